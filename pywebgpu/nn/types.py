"""What modules take, in PyTorch's words. For annotations only: nothing imports it while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pywebgpu.nn.parameter_containers import ParameterDict
from pywebgpu.tensor.tensor import Tensor

Scale = float | Sequence[float]
OutputSizes = int | Sequence[int | None] | None  # None keeps the size of an axis, or of all
Hidden = Tensor | tuple[Tensor, Tensor]  # the state of a recurrent layer; an LSTM has two
Parameters = Mapping[str, object] | ParameterDict | Iterable[tuple[str, object]]
