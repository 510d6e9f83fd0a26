"""What `doctor` says of the device that the service's model was asked to compute on, before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inferdeck.checks import Check

__all__ = ["model_device"]

_SETTING = "INFERDECK_SERVICE_MODEL_DEVICE"


# y = x, in ONNX' wire format: the package onnx is no part of what serves.
_IDENTITY = (
    b'\x08\x08:7\n\x10\n\x01x\x12\x01y"\x08Identity\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\x11"
)


def _session_providers(available: Sequence[str]) -> Sequence[str]:
    """Return the providers that a session gets which asks for a GPU: whether it can start is seen only so."""
    import onnxruntime

    from service.device import providers

    options = onnxruntime.SessionOptions()
    # What does not start is told by the check, once.
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(_IDENTITY, options, providers=providers("cuda", available))
    return list(session.get_providers())


def model_device(
    available: Callable[[], Sequence[str]] | None = None,
    got: Callable[[Sequence[str]], Sequence[str]] = _session_providers,
) -> Iterator[Check]:
    """Yield whether the model will compute where the service's settings ask for.

    Args:
        available: Returns the providers of this build of ONNX Runtime.
        got: Returns those that a session gets.
    """
    from service.device import WrongDevice, judge
    from service.settings import load_settings

    wanted = load_settings().model_device
    if wanted == "cpu":
        yield Check("device", "ok", "the model in the service's process shall compute on the CPU")
        return
    try:
        if available is None:
            import onnxruntime

            available = onnxruntime.get_available_providers
    except ImportError:
        yield Check("device", "absent", "onnxruntime is not installed", "pip install 'inferdeck[service]'")
        return
    has = available()
    try:
        found = judge(wanted, has, got(has))
    except WrongDevice as error:
        yield Check("device", "fail", str(error), f"mend that, or set {_SETTING}=cpu")
        return
    if found.warning:
        yield Check("device", "warn", found.warning, f"mend that, or set {_SETTING}=cpu")
    else:
        yield Check("device", "ok", "the model in the service's process computes on a GPU")
