"""Sequences of several lengths: padded to one, or packed step by step without padding, for recurrent layers."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self

from pywebgpu import dtypes
from pywebgpu.tensor import create, functions, movement, tensor
from pywebgpu.tensor.tensor import Tensor

UNSORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
    "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
    "need ONNX exportability."
)


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """The elements of all sequences that have a first step, then of those that have a second, and so on, as `data`.

    The longest sequence comes first. `batch_sizes` (on the host) counts the sequences that have each step;
    `sorted_indices` says which sequence of the caller each is, `unsorted_indices` the other way; None where they agree.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor | Sequence[Tensor],
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        if batch_sizes is None:
            if not isinstance(data, list | tuple) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if not batch_sizes.is_cpu:
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        back = invert_permutation(sorted_indices) if unsorted_indices is None else unsorted_indices
        return super().__new__(cls, data, batch_sizes, sorted_indices, back)  # type: ignore[arg-type]

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same on another device, or of another dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        both = [
            None if order is None else order.to(data.device) for order in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *both)

    def cpu(self) -> Self:
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        return self.to(self.data.cuda(*args, **kwargs).device)

    def double(self) -> Self:
        return self.to(dtype=dtypes.float64)

    def float(self) -> Self:
        return self.to(dtype=dtypes.float32)

    def half(self) -> Self:
        return self.to(dtype=dtypes.float16)

    def long(self) -> Self:
        return self.to(dtype=dtypes.int64)

    def int(self) -> Self:
        return self.to(dtype=dtypes.int32)

    def short(self) -> Self:
        return self.to(dtype=dtypes.int16)

    def char(self) -> Self:
        return self.to(dtype=dtypes.int8)

    def byte(self) -> Self:
        return self.to(dtype=dtypes.uint8)

    def pin_memory(self) -> Self:
        return self

    def is_pinned(self) -> bool:
        return False

    @property
    def is_cuda(self) -> bool:
        return bool(self.data.is_cuda)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each number stands in a permutation; None of None."""
    if permutation is None:
        return None
    order = permutation.tolist()
    return _numbers(sorted(range(len(order)), key=order.__getitem__), permutation)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs sequences that are padded to one length. Shapes: (t, n, ...), or (n, t, ...) with `batch_first`.

    Raises: RuntimeError where lengths are not positive, more or fewer than sequences, longer than t, or unsorted.
    """
    sizes: list[int] = lengths.tolist() if isinstance(lengths, Tensor) else [int(length) for length in lengths]
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    x: Tensor = input.transpose(0, 1) if batch_first else input
    length, count = x.shape[0], x.shape[1]
    if len(sizes) != count:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size={count})"
        )
    if not sizes or min(sizes) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    order = sorted(range(count), key=lambda row: -sizes[row])
    if enforce_sorted and any(size < other for size, other in itertools.pairwise(sizes)):
        raise RuntimeError(UNSORTED)
    if max(sizes) > length:
        raise RuntimeError(f"Expected lengths of at most {length}, the steps of the input, but got {max(sizes)}")
    batch_sizes = [sum(size > step for size in sizes) for step in range(max(sizes))]
    rows = [step * count + row for step, now in enumerate(batch_sizes) for row in order[:now]]
    data = x.reshape(-1, *x.shape[2:]).index_select(0, _numbers(rows, input))
    indices = None if enforce_sorted else _numbers(order, input)
    return PackedSequence(data, _host(batch_sizes), indices)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded sequences, and their lengths (on the host), in the caller's order.

    total_length: what to pad to, at least the longest sequence. Raises: ValueError where it is shorter.
    """
    batch_sizes: list[int] = sequence.batch_sizes.tolist()
    longest = len(batch_sizes)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    back = sequence.unsorted_indices
    order = list(range(batch_sizes[0])) if back is None else back.tolist()
    padded = padded_steps(sequence.data, batch_sizes, order, total_length or longest, padding_value)
    lengths = _host([sum(now > row for now in batch_sizes) for row in order])
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def padded_steps(
    data: Tensor, batch_sizes: list[int], order: list[int], length: int, padding_value: float = 0.0
) -> Tensor:
    """Packed elements as (length, n, ...); `order` says which packed sequence each of the n is."""
    rows, start = [], 0
    for now in batch_sizes:
        rows += [start + row if row < now else data.shape[0] for row in order]
        start += now
    rows += [data.shape[0]] * ((length - len(batch_sizes)) * len(order))
    padding = create.full((1, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded: Tensor = movement.cat([data, padding], 0).index_select(0, _numbers(rows, data))
    return padded.reshape(length, len(order), *data.shape[1:])


def packed_steps(padded: Tensor, batch_sizes: list[int]) -> Tensor:
    """(t, n, ...) without its padding, the longest sequence first."""
    count = padded.shape[1]
    rows = [step * count + row for step, now in enumerate(batch_sizes) for row in range(now)]
    return padded.reshape(-1, *padded.shape[2:]).index_select(0, _numbers(rows, padded))


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: Literal["right", "left"] = "right",
) -> Tensor:
    """Sequences (length, ...) as one tensor (longest, n, ...), or (n, longest, ...) with `batch_first`."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    listed: list[Tensor] = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence.shape[0] for sequence in listed)
    padded = []
    for sequence in listed:
        missing = create.full(
            (longest - sequence.shape[0], *sequence.shape[1:]),
            padding_value,
            dtype=listed[0].dtype,
            device=sequence.device,
        )
        padded.append(movement.cat([sequence, missing] if padding_side == "right" else [missing, sequence], 0))
    return functions.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` was given, in its order."""
    x: Tensor = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(x, lengths.tolist(), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (length, ...)."""
    lengths = [sequence.shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that `pack_sequence` was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def _numbers(values: list[int], like: tensor.Tensor) -> Tensor:
    return create.tensor(values, dtype=dtypes.int64, device=like.device)


def _host(values: list[int]) -> Tensor:
    return create.tensor(values, dtype=dtypes.int64, device="cpu")
