"""What kind of failure a failure is, and which failures have one cause."""

from __future__ import annotations

import re
from typing import Any

VALUE, ACCEPTED, REFUSAL, LIBTORCH, OTHER = (
    "wrong value",
    "wrong use accepted",
    "refusal",
    "needs libtorch",
    "other error",
)
KINDS = (VALUE, ACCEPTED, REFUSAL, LIBTORCH, OTHER)

_NOT_RAISED = re.compile(r"not raised|did not raise|not triggered|was not raised|UnexpectedSuccess")
_MESSAGE = re.compile(r'" does not match "|Expected error message')
_LIBTORCH = re.compile(
    r"torch[._]_?C\b|torch\.ops|torch\.(jit|_dynamo|_inductor|_lazy|fx|_export|export|onnx|distributed|package|ao)\b"
    r"|TorchScript|__torch_dispatch__|FileCheck|inside of PyTorch"
)
_REFUSALS = ("NotImplementedError", "RuntimeError", "TypeError", "ValueError", "IndexError", "ShapeError", "DtypeError")
_LACKING = ("AttributeError", "ImportError", "ModuleNotFoundError", "NotImplementedError")


def kind(result: dict[str, Any]) -> str:
    """The class of a failure, one of KINDS."""
    error, message = result["type"], result["message"]
    if error == "UnexpectedSuccess" or (error == "AssertionError" and _NOT_RAISED.search(message)):
        return ACCEPTED
    if error == "AssertionError":
        return OTHER if _MESSAGE.search(message) else VALUE
    if error in _LACKING and _LIBTORCH.search(message):
        return LIBTORCH
    is_ours = bool(result["frames"]) and "/pywebgpu/" in result["frames"][-1].partition(":")[0]
    return REFUSAL if is_ours and error in _REFUSALS else OTHER


def cause(result: dict[str, Any]) -> str:
    """A text that failures of one cause share: the error, and its message without numbers, names and texts."""
    lines = [line for line in result["message"].splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if result["type"] == "AssertionError" and first.startswith(("Tensor-likes", "Scalars", "False", "True")):
        frame = next((frame for frame in reversed(result["frames"]) if "/test/" in frame.partition(":")[0]), "")
        first = f"{first[:60]} | {frame.partition(': ')[2]}"
    first = re.sub(r"0x[0-9a-f]+|(?<![A-Za-z_])-?\d+(\.\d+)?(e-?\d+)?", "#", first)
    return f"{result['type']}: {first[:160]}"
