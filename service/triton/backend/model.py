"""Triton's backend "onnxruntime" where the compiled one cannot be had: a Python backend around ONNX Runtime.

Triton's Python stub imports this file from `<backends>/onnxruntime/model.py`; the repository stays the one that
NVIDIA's image serves with its own backend of that name. Nothing of inferdeck can be imported here: it is another
environment, with numpy 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb  # type: ignore[import-not-found]  # exists inside Triton's stub alone


class TritonPythonModel:
    """One version of the model, in one stub process."""

    def initialize(self, args: dict[str, Any]) -> None:
        """Load the version's graph with one thread, as the service does in process."""
        config = json.loads(args["model_config"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        graph = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._inputs = [tensor["name"] for tensor in config["input"]]
        self._outputs = [tensor["name"] for tensor in config["output"]]

    def execute(self, requests: list[Any]) -> list[Any]:
        """Answer what the dynamic batcher has put together: same shapes, hence one run; one by one if that fails."""
        feeds = [
            {name: pb.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs}
            for request in requests
        ]
        try:
            joined = {name: np.concatenate([feed[name] for feed in feeds]) for name in self._inputs}
            outputs = self._session.run(self._outputs, joined)
        except Exception as error:  # noqa: BLE001 - one bad row must not fail its batch mates
            return [self._alone(feed) for feed in feeds] if len(feeds) > 1 else [self._failed(error)]
        ends = np.cumsum([len(feed[self._inputs[0]]) for feed in feeds])[:-1]
        parts = [np.split(output, ends) for output in outputs]
        return [self._answer([part[index] for part in parts]) for index in range(len(feeds))]

    def _alone(self, feed: dict[str, Any]) -> Any:
        try:
            return self._answer(self._session.run(self._outputs, feed))
        except Exception as error:  # noqa: BLE001 - told to this request's caller
            return self._failed(error)

    def _answer(self, outputs: list[Any]) -> Any:
        pairs = zip(self._outputs, outputs, strict=True)
        return pb.InferenceResponse(
            output_tensors=[pb.Tensor(name, np.ascontiguousarray(value)) for name, value in pairs]
        )

    @staticmethod
    def _failed(error: Exception) -> Any:
        # An error object of its own for each response: one that is shared kills this server.
        return pb.InferenceResponse(output_tensors=[], error=pb.TritonError(" ".join(str(error).split())[:200]))
