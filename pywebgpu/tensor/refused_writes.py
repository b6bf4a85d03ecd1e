"""Why autograd refuses a write, or the reading of an inference tensor: texts of errors, which few programs need."""

from __future__ import annotations

TEXTS = {
    "several": "Output of unbind, split or iteration is a view and {} modified inplace. This view is the output of a "
    "function that returns multiple views. Such functions do not allow the output views to be modified inplace. You "
    "should replace the inplace operation by an out-of-place one, or take the view by its index.",
    "no_grad": "A view was created in no_grad mode and {} modified inplace with grad mode enabled. Take the view in "
    "grad mode, or write to it inside no_grad.",
    "inference": "A view was created in inference mode and {} modified inplace in normal mode. Take the view in grad "
    "mode, or write to it inside inference_mode.",
    "saved": "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.",
    "written": "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
    "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.",
}


def error(kind: str, writing: str = "is being") -> RuntimeError:
    """The error of a kind of TEXTS. writing: what is or was written, where the text asks for that."""
    return RuntimeError(TEXTS[kind].format(writing))
