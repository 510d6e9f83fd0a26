"""How long the model takes on one thread, for its card."""

from __future__ import annotations

import time

import numpy as np

__all__ = ["SIZES", "milliseconds"]

SIZES = ((1, 32), (8, 32), (8, 128), (1, 512), (8, 512))
"""Texts and tokens of a batch."""


def milliseconds(graph: bytes, repeats: int = 40) -> dict[str, dict[str, float]]:
    """Return median and tenth percentile of a call by size of the batch, such as "8x128".

    Args:
        graph: The serialized graph.
        repeats: Calls of each size.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    told = {}
    for size in SIZES:
        ids = np.full(size, 2, dtype=np.int64)
        took = []
        for _ in range(repeats):
            started = time.perf_counter()
            session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
            took.append((time.perf_counter() - started) * 1e3)
        p10, median = (float(np.percentile(took, share)) for share in (10, 50))
        told[f"{size[0]}x{size[1]}"] = {"median": round(median, 2), "p10": round(p10, 2)}
    return told
