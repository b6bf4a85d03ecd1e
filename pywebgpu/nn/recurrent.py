"""Recurrent layers and cells, with torch's weight names."""

from __future__ import annotations

import warnings
from math import sqrt
from typing import TYPE_CHECKING, Any, overload

from pywebgpu.composites import recurrent
from pywebgpu.ir.graph import thread_state
from pywebgpu.nn import functional, init
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.nn.utils import rnn
from pywebgpu.tensor import create
from pywebgpu.tensor.apply import apply, called
from pywebgpu.tensor.functions import stack
from pywebgpu.tensor.movement import cat
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.dtypes import DType
    from pywebgpu.nn.types import Hidden
    from pywebgpu.tensor.factory_options import DeviceLike


class RNNBase(Module):
    """Layers of one kind of recurrence over (t, n, input_size), or (n, t, input_size) with batch_first."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        _check_dropout(dropout, num_layers)
        settings: tuple[tuple[str, object, type], ...] = (
            ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
            ("hidden_size", hidden_size, int), ("num_layers", num_layers, int),
        )  # fmt: skip
        for name, value, kind in settings:
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:  # type: ignore[operator]
                raise ValueError(f"{name} must be greater than zero")
        if not 0 <= proj_size < hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size, and not negative")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(self._directions):
                suffix = f"_l{layer}{'_reverse' if direction else ''}"
                shapes = self._shapes(layer)
                for name, shape in shapes.items():
                    self.register_parameter(name + suffix, Parameter(create.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Of a layer's parameters in one direction."""
        rows, width = recurrent.COUNT[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        inputs = self.input_size if layer == 0 else width * self._directions
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, width)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"all_weights": [[None]]}  # Has PyTorch find the weights by their names.

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "all_weights"})

    @property
    def all_weights(self) -> list[list[Parameter]]:
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [parameter for parameters in self.all_weights for parameter in parameters]

    def reset_parameters(self) -> None:
        """Draws all from the interval of 1 / sqrt(hidden_size) around 0."""
        bound = 1 / sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Accepted for programs that name it: weights stay as they are."""

    @overload
    def forward(self, input: Tensor, hx: Hidden | None = None) -> tuple[Tensor, Hidden]: ...
    @overload
    def forward(self, input: rnn.PackedSequence, hx: Hidden | None = None) -> tuple[rnn.PackedSequence, Hidden]: ...
    def forward(
        self, input: Tensor | rnn.PackedSequence, hx: Hidden | None = None
    ) -> tuple[Tensor | rnn.PackedSequence, Hidden]:
        if isinstance(input, rnn.PackedSequence):
            return self._forward_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        self._check_input(input)
        batched = input.ndim == 3
        x: Any = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        x, final = self._run(x, self._states(x, hx, batched=batched))
        if not batched:
            x, final = x.squeeze(1), [state.squeeze(1) for state in final]
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, (final[0], final[1]) if self.mode == "LSTM" else final[0]

    def _forward_packed(self, packed: rnn.PackedSequence, hx: Hidden | None) -> tuple[rnn.PackedSequence, Hidden]:
        """All steps of the longest sequence; the others keep their states beyond their ends."""
        data, batch_sizes = packed.data, packed.batch_sizes.tolist()
        if data.ndim != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {data.ndim}")
        self._check_input(data)
        x = rnn.padded_steps(data, batch_sizes, list(range(batch_sizes[0])), len(batch_sizes))
        present = [[[row < now] for row in range(batch_sizes[0])] for now in batch_sizes]
        states = self._states(x, hx, batched=True)
        if hx is not None and packed.sorted_indices is not None:
            states = [state.index_select(1, packed.sorted_indices) for state in states]
        out, final = self._run(x, states, create.tensor(present, device=data.device))
        back = packed.unsorted_indices
        final = final if back is None else [state.index_select(1, back) for state in final]
        output = rnn.PackedSequence(rnn.packed_steps(out, batch_sizes), *packed[1:])
        return output, (final[0], final[1]) if self.mode == "LSTM" else final[0]

    def _check_input(self, x: Tensor) -> None:
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if x.dtype is not dtype and not thread_state.autocast:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({dtype}). Convert input: input.to({dtype}), "
                f"or convert model: model.to({x.dtype})"
            )

    def _run(self, x: Tensor, states: list[Any], present: Tensor | None = None) -> tuple[Tensor, list[Any]]:
        """The outputs of the last layer (t, n, size), and the last states of all layers."""
        ends: list[list[Any]] = [[] for _ in states]
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                position = layer * self._directions + direction
                weights = {name.split("_l")[0]: getattr(self, name) for name in self._all_weights[position]}
                out, *last = apply(
                    recurrent.layer,
                    self.mode,
                    x,
                    [state[position] for state in states],
                    weights["weight_ih"],
                    weights["weight_hh"],
                    weights.get("bias_ih"),
                    weights.get("bias_hh"),
                    weights.get("weight_hr"),
                    backwards=direction == 1,
                    present=present,
                    is_host=x.is_cpu,
                )
                outputs.append(out if self.mode == "LSTM" else called(out, "aten::stack"))
                for end, state in zip(ends, last, strict=True):
                    end.append(state)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
            if self.dropout and layer + 1 < self.num_layers:
                x = functional.dropout(x, self.dropout, self.training)
        return x, [stack(end, 0) for end in ends]

    def _states(self, x: Tensor, hx: Hidden | None, *, batched: bool) -> list[Any]:
        """The states before the first step, each (layers * directions, n, size); zeros when not given."""
        count, n = self.num_layers * self._directions, x.shape[1]
        sizes = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            sizes.append(self.hidden_size)
        if hx is None:
            return [create.zeros(count, n, size, dtype=x.dtype, device=x.device) for size in sizes]
        states: list[Any] = list(hx) if self.mode == "LSTM" else [hx]
        if not batched:
            states = [state.unsqueeze(1) for state in states]
        for state, size in zip(states, sizes, strict=True):
            if tuple(state.shape) != (count, n, size):
                raise RuntimeError(f"Expected hidden size {(count, n, size)}, got {list(state.shape)}")
        return states

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False
        }  # fmt: skip
        for name, default in defaults.items():
            value = getattr(self, name)
            if value != default:
                text += f", {name}={value}"
        return text


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu. Returns all outputs and the last state."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if len(args) > 3:
            nonlinearity, args = args[3], (*args[:3], *args[4:])
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter, Schmidhuber 1997). Returns all outputs and (h, c) of the last step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent unit (Cho et al. 2014, arXiv 1406.1078). Returns all outputs and the last state."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


# Cells


class RNNCellBase(Module):
    """One step of a recurrence."""

    kind: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = recurrent.COUNT[self.kind] * hidden_size
        self.weight_ih = Parameter(create.empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(create.empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            vector = Parameter(create.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, vector)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor, hx: Hidden | None = None) -> Hidden:
        if input.ndim not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for number, part in enumerate(() if hx is None else (hx,) if isinstance(hx, Tensor) else hx):
            if part.ndim not in (1, 2):
                name = f"hx[{number}]" if self.kind == "LSTM" else "hidden"
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {part.ndim}D instead")
        batched = input.ndim == 2
        x: Any = input if batched else input.unsqueeze(0)
        count = 2 if self.kind == "LSTM" else 1
        if hx is None:
            state = [create.zeros(x.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)] * count
        else:
            state = list(hx) if count == 2 else [hx]  # type: ignore[list-item]
            if not batched:
                state = [part.unsqueeze(0) for part in state]
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        out = apply(recurrent.cell, self.kind, x, state, *weights, is_host=x.is_cpu)
        if not batched:
            out = tuple(part.squeeze(0) for part in out)
        return (out[0], out[1]) if count == 2 else out[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


class RNNCell(RNNCellBase):
    """One step of RNN: (n, input_size), (n, hidden_size) -> (n, hidden_size)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        self.kind = f"RNN_{nonlinearity.upper()}"
        if self.kind not in recurrent.COUNT:
            raise ValueError(f"Unknown nonlinearity: {nonlinearity}")
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, bias, device, dtype)

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of LSTM: (n, input_size), ((n, hidden_size), (n, hidden_size)) -> (h, c)."""

    kind = "LSTM"


class GRUCell(RNNCellBase):
    """One step of GRU: (n, input_size), (n, hidden_size) -> (n, hidden_size)."""

    kind = "GRU"


def _check_dropout(dropout: object, num_layers: int) -> None:
    if not isinstance(dropout, int | float) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
