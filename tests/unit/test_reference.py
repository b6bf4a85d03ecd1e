"""The reference of the documentation: every public name says what it does, and most show shapes, dtypes and errors."""

import pytest

from tests.cases.tables import TABLES
from tools.docs import reference, samples, surface

# Of modules whose names are called with tensors: how many of them show a call with its shapes and dtypes.
CALLED = {
    "": 555, "Tensor": 535, "nn": 155, "nn.functional": 125, "linalg": 42, "fft": 18, "special": 56, "masked": 19,
    "distributions": 60, "optim": 13, "optim.lr_scheduler": 13, "nn.utils.rnn": 7, "func": 11,
}  # fmt: skip
REFUSING = 1_000  # names of all modules that show what they refuse
OF_ALL_TABLES = pytest.mark.long("calls every case of every table")


@pytest.fixture(scope="module")
def found() -> dict[str, samples.Found]:
    collected = samples.collect()
    reference.extend(collected)
    return collected


@pytest.mark.parametrize("path", surface.modules())
def test_every_public_name_says_what_it_does(path: str) -> None:
    assert [name.full for name in surface.names(path) if not surface.text(name)] == []


@OF_ALL_TABLES
def test_names_show_shapes_and_dtypes_of_calls(found: dict[str, samples.Found]) -> None:
    shown = {path: sum(bool(reference.merged(name, found).calls) for name in surface.names(path)) for path in CALLED}
    assert {path: count for path, count in shown.items() if count < CALLED[path]} == {}


@OF_ALL_TABLES
def test_hardly_a_name_shows_neither_a_call_nor_a_refusal(found: dict[str, samples.Found]) -> None:
    """Bases of classes, errors that take a GPU to happen, and what opens one."""
    names = [name for path in surface.modules() for name in surface.names(path)]
    known = {name.full: reference.merged(name, found) for name in names}
    assert len([name for name, one in known.items() if not one.calls and not one.errors]) <= 5


@OF_ALL_TABLES
def test_names_show_what_they_refuse(found: dict[str, samples.Found]) -> None:
    names = [name for path in surface.modules() for name in surface.names(path)]
    assert sum(bool(reference.merged(name, found).errors) for name in names) >= REFUSING


def test_an_entry_has_signature_text_and_calls() -> None:
    found = samples.collect({"losses": TABLES["losses"]})
    names = {name.name: name for name in surface.names("nn.functional")}
    text = reference.entry(names["cross_entropy"], found)
    assert "torch.nn.functional.cross_entropy(input, target, weight=None" in text
    assert "cross_entropy(float32[4, 5], int64[4], reduction='mean') -> float32[]" in text
    assert "*Tested with*" in text
    assert "Error: " in text


def test_recording_leaves_the_library_as_it_was() -> None:
    before = {name: vars(surface.holder("Tensor")).get(name) for name in dir(surface.holder("Tensor"))}
    with samples.methods(samples.Recorder()):
        assert vars(surface.holder("Tensor"))["sum"] is not before["sum"]
    assert {name: vars(surface.holder("Tensor")).get(name) for name in dir(surface.holder("Tensor"))} == before
