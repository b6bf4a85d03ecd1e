"""What the command says of PyTorch's own unit tests: classes of failures, samples, exclusions."""

import pytest

from tests.upstream import command, report, verdict

FRAMES = ["/x/test/test_torch.py:3 test_a: f()", "/x/pywebgpu/tensor/base.py:4 f: raise RuntimeError"]


@pytest.mark.parametrize(
    ("error", "message", "frames", "kind"),
    [
        ("AssertionError", "Tensor-likes are not close!", FRAMES[:1], verdict.VALUE),
        ("AssertionError", "RuntimeError not raised by f", FRAMES[:1], verdict.ACCEPTED),
        ("UnexpectedSuccess", "", [], verdict.ACCEPTED),
        ("AssertionError", '"a" does not match "b"', FRAMES[:1], verdict.OTHER),
        ("RuntimeError", "add: needs two tensors", FRAMES, verdict.REFUSAL),
        ("RuntimeError", "add: needs two tensors", FRAMES[:1], verdict.OTHER),
        ("AttributeError", "module 'torch._C' has no attribute '_x'", FRAMES, verdict.LIBTORCH),
        ("Crash", "status -11", [], verdict.OTHER),
    ],
)
def test_a_failure_has_its_class(error: str, message: str, frames: list[str], kind: str) -> None:
    assert verdict.kind({"type": error, "message": message, "frames": frames}) == kind


def test_a_sample_of_a_sample_is_a_sample_of_the_whole() -> None:
    names = [f"TestX.test_{number}" for number in range(200)]
    assert command.sample(command.sample(names, 50), 20) == command.sample(names, 20)


def test_a_test_of_cpu_has_its_name_on_a_device_that_pytorch_does_not_bring() -> None:
    assert command.on_device("TestACPU.test_b_cpu_int64", "webgpu") == "TestAPRIVATEUSE1.test_b_webgpu_int64"
    assert command.on_device("TestA.test_b", "webgpu") == ""
    assert command.on_device("TestACPU.test_b_cpu_float64", "webgpu") == ""


def test_each_exclusion_has_a_reason_and_they_are_few() -> None:
    exclusions = report.exclusions()
    assert all(exclusions.values())
    names = [f"{file}::{name}" for file, entry in command.reference().items() for name in entry["passed"]]
    excluded = [name for name in names if command.is_excluded(name, list(exclusions))]
    assert len(excluded) <= 0.06 * len(names)
