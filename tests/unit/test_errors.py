"""Tracebacks of the library's errors: the program's lines, and none of the library's."""

import subprocess
import sys
import traceback
import types
from pathlib import Path

import pytest

import pywebgpu as torch
from pywebgpu import devices, errors
from pywebgpu.ir import origin

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have them; the tests of this project see whole ones."""
    monkeypatch.setattr(errors, "_short", True)


def files(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.ones(2, 3) @ torch.ones(4, 5),
        lambda: torch.ones(2) + torch.ones(3),
        lambda: torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(4, 5))(torch.ones(2)),
        lambda: torch.cat([torch.ones(2, 3), torch.ones(2)]),
    ],
)
def test_a_traceback_shows_the_program_alone(wrong: types.FunctionType) -> None:
    with pytest.raises(errors.ShapeError) as caught:
        wrong()
    assert set(files(caught.value)) == {__file__}
    assert any("/pywebgpu/" in str(entry.path) for entry in caught.traceback)  # A debugger has all of it.


@pytest.mark.parametrize(
    ("wrong", "way"),
    [
        (lambda: torch.arnage(3), r"Did you mean: 'arange'\?$"),
        (lambda: torch.ones(3, device="cuda"), 'the GPU is "webgpu" here'),
        (lambda: torch.ones(3, requires_grad=True).mul(2).backward(), r"the shape \(3,\); reduce it"),
        (lambda: torch.load(__file__), "no file of torch.save"),
    ],
)
def test_usual_mistakes_are_told_the_way_out(wrong: types.FunctionType, way: str) -> None:
    with pytest.raises((RuntimeError, AttributeError, ValueError), match=way):
        wrong()


def test_without_numpy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one == "numpy" or one.startswith("pywebgpu.devices.cpu")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(errors.DeviceError, match=r'needs NumPy: pip install "pywebgpu\[native\]"'):
        devices._backend("cpu")


def test_an_error_of_the_library_alone_is_shown_whole() -> None:
    program = (
        "from pywebgpu.errors import DeviceError\ntry:\n    raise DeviceError('x')\nexcept DeviceError as e:\n    t = e"
    )
    names: dict[str, BaseException] = {}
    exec(compile(program, str(ROOT / "pywebgpu" / "x.py"), "exec"), {}, names)
    assert names["t"].__traceback__ is not None


def test_it_can_be_replaced_as_that_of_any_exception() -> None:
    error = errors.DeviceError("text")
    assert error.__traceback__ is None
    try:
        raise ValueError
    except ValueError as other:
        error.__traceback__ = other.__traceback__
        same = error.with_traceback(other.__traceback__)
    assert same is error
    assert files(error) == [__file__]


def test_all_is_shown_where_that_is_asked_for() -> None:
    program = """
import traceback, pywebgpu as torch
try:
    torch.ones(2) + torch.ones(3)
except RuntimeError as error:
    print(len(traceback.extract_tb(error.__traceback__)))
"""
    shown = []
    for variables in ({}, {"PYWEBGPU_TRACEBACKS": "full"}):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT,
            env={"PYWEBGPU_DEVICE": "cpu"} | variables,
        )  # fmt: skip
        shown.append(int(done.stdout))
    assert shown[0] == 1 < shown[1]


def test_frames_are_marked_for_ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    with pytest.raises(errors.ShapeError) as caught:
        torch.ones(2) + torch.ones(3)
    marks = [(str(entry.path), "__tracebackhide__" in entry.frame.f_locals) for entry in caught.traceback]
    assert len(marks) > 1
    assert all(marked == ("/pywebgpu/" in path and "/tests/" not in path) for path, marked in marks)


def test_cells_of_notebooks_have_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert origin._line("<ipython-input-14-951e2f>", 3) == "cell 14:3"
    assert origin._line("/tmp/marimo_77/__marimo__cell_Hbol_.py", 2) == "cell Hbol:2"
    assert origin._line("train.py", 5) == "train.py:5"
    compiler = types.SimpleNamespace(format_code_name=lambda name: ("Cell", "In[7]") if "ipykernel" in name else None)
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(compile=compiler)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert origin._line("/tmp/ipykernel_9/123.py", 4) == "cell 7:4"
    assert origin._line("train.py", 5) == "train.py:5"
