"""Sequences of several lengths against PyTorch's: packing, padding, and recurrent layers over what is packed."""

from typing import Any

import numpy as np
import pytest
import torch

import pywebgpu

pytestmark = pytest.mark.usefixtures("default_device")

LENGTHS = {"sorted": [5, 3, 3, 1], "unsorted": [2, 5, 1, 4]}
LAYERS: dict[str, tuple[str, dict[str, Any]]] = {
    "rnn": ("RNN", {"nonlinearity": "relu"}),
    "lstm": ("LSTM", {"num_layers": 2}),
    "projected": ("LSTM", {"proj_size": 2, "bidirectional": True}),
    "gru": ("GRU", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "no bias": ("RNN", {"bias": False}),
}


def sequences(library: Any, lengths: list[int]) -> list[Any]:
    random = np.random.default_rng(0)
    return [
        library.tensor(random.standard_normal((length, 3)).astype("float32"), requires_grad=True) for length in lengths
    ]


def numbers(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [numbers(item) for item in value]
    return None if value is None else np.asarray(value.detach().cpu().numpy())


def close(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)
    elif wanted is None:
        assert found is None
    else:
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def packed(library: Any, lengths: list[int], options: dict[str, Any]) -> Any:
    rnn = library.nn.utils.rnn
    given = sequences(library, lengths)
    one = rnn.pack_sequence(given, enforce_sorted=False)
    padded, sizes = rnn.pad_packed_sequence(one, **options)
    again = rnn.pack_padded_sequence(padded, sizes, options.get("batch_first", False), enforce_sorted=False)
    (padded.square().sum() + again.data.exp().sum()).backward()
    parts = [one.grad for one in given]
    return numbers([tuple(one), padded, sizes, tuple(again), rnn.unpack_sequence(one), parts, rnn.pad_sequence(given)])


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("options", [{}, {"batch_first": True, "padding_value": -1.5}, {"total_length": 7}])
def test_packing_and_padding_are_torchs(lengths: list[int], options: dict[str, Any]) -> None:
    close(packed(pywebgpu, lengths, options), packed(torch, lengths, options))


def run(library: Any, name: str, lengths: list[int], *, with_state: bool, sort: bool) -> Any:
    kind, options = LAYERS[name]
    layer = getattr(library.nn, kind)(3, 4, **options)
    with library.no_grad():
        for n, parameter in enumerate(layer.parameters()):
            values = np.random.default_rng(n).standard_normal(tuple(parameter.shape)).astype("float32") * 0.5
            parameter.copy_(library.tensor(values))
    given = sequences(library, lengths)
    state: Any = None
    if with_state:
        count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
        sizes = (options.get("proj_size", 4), 4) if kind == "LSTM" else (4,)
        parts = [library.linspace(-1, 1, count * len(lengths) * n).reshape(count, len(lengths), n) for n in sizes]
        state = [part.requires_grad_() for part in parts]
        state = tuple(state) if kind == "LSTM" else state[0]
    out, last = layer(library.nn.utils.rnn.pack_sequence(given, enforce_sorted=sort), state)
    assert isinstance(out, library.nn.utils.rnn.PackedSequence)
    ends = last if isinstance(last, tuple) else (last,)
    (out.data.square().sum() + sum(end.exp().sum() for end in ends)).backward()
    states = () if state is None else state if isinstance(state, tuple) else (state,)
    return numbers(
        [tuple(out), ends, [one.grad for one in given], [p.grad for p in layer.parameters()], [s.grad for s in states]]
    )


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_packed_sequences(name: str, lengths: str, with_state: bool) -> None:
    options = {"with_state": with_state, "sort": lengths == "sorted"}
    close(run(pywebgpu, name, LENGTHS[lengths], **options), run(torch, name, LENGTHS[lengths], **options))


def test_padding_on_the_left_is_torchs() -> None:
    found, wanted = (
        lib.nn.utils.rnn.pad_sequence(sequences(lib, [2, 4]), padding_value=3.0, padding_side="left")
        for lib in (pywebgpu, torch)
    )
    close(numbers(found), numbers(wanted))


def test_a_packed_sequence_moves_and_casts() -> None:
    for library in (pywebgpu, torch):
        one = library.nn.utils.rnn.pack_sequence(sequences(library, [1, 2]), enforce_sorted=False)
        other = one.half()
        assert other.data.dtype is library.float16
        assert other.sorted_indices.tolist() == [1, 0] == other.unsorted_indices.tolist()
        assert one.float() is one


WRONG = {
    "unsorted": lambda t, r: r.pack_padded_sequence(t.zeros(3, 2, 1), [1, 3]),
    "a length of 0": lambda t, r: r.pack_padded_sequence(t.zeros(3, 2, 1), [3, 0]),
    "too few lengths": lambda t, r: r.pack_padded_sequence(t.zeros(3, 2, 1), [3]),
    "too short a total": lambda t, r: r.pad_packed_sequence(r.pack_sequence([t.zeros(3, 1)]), total_length=2),
    "a size of input": lambda t, r: t.nn.GRU(2, 2)(r.pack_sequence([t.zeros(3, 1)])),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_sequences_raise_what_torch_raises(name: str) -> None:
    with pytest.raises((RuntimeError, ValueError)) as wanted:
        WRONG[name](torch, torch.nn.utils.rnn)
    with pytest.raises(type(wanted.value)):
        WRONG[name](pywebgpu, pywebgpu.nn.utils.rnn)
