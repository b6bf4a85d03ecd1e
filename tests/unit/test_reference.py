"""The reference of the documentation: every public name says what it does, and most show shapes, dtypes and errors."""

import pytest

from tools.docs import reference, samples, surface

# Of modules whose names are called with tensors: how many of them show a call with its shapes and dtypes.
CALLED = {"": 500, "Tensor": 485, "nn": 104, "nn.functional": 107, "linalg": 40, "fft": 18, "special": 53, "masked": 19}
REFUSING = 170  # names of all modules that show what they refuse


@pytest.fixture(scope="module")
def found() -> dict[str, samples.Found]:
    collected = samples.collect()
    reference.extend(collected)
    return collected


@pytest.mark.parametrize("path", surface.modules())
def test_every_public_name_says_what_it_does(path: str) -> None:
    assert [name.full for name in surface.names(path) if not surface.text(name)] == []


def test_names_show_shapes_and_dtypes_of_calls(found: dict[str, samples.Found]) -> None:
    shown = {path: sum(bool(reference.merged(name, found).calls) for name in surface.names(path)) for path in CALLED}
    assert {path: count for path, count in shown.items() if count < CALLED[path]} == {}


def test_names_show_what_they_refuse(found: dict[str, samples.Found]) -> None:
    names = [name for path in surface.modules() for name in surface.names(path)]
    assert sum(bool(reference.merged(name, found).errors) for name in names) >= REFUSING


def test_an_entry_has_signature_text_and_calls(found: dict[str, samples.Found]) -> None:
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
