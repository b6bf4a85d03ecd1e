"""Layers whose weights stay quantised: on a GPU they take what they take in a file, and kernels decode what they read.

The weights are constant. A gradient flows to what is multiplied by them, so that adapters beside them can be trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pywebgpu import devices
from pywebgpu.composites import quantized
from pywebgpu.composites.quantized import FORMATS, Quantized
from pywebgpu.io import block_formats
from pywebgpu.nn.embedding import Embedding
from pywebgpu.nn.linear import Linear
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.tensor import create
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike


@dataclass(frozen=True)
class Planes:
    """A weight (rows, columns) in a format: the parts of its blocks, each (rows, blocks * count), by their names."""

    format: str
    tensors: Mapping[str, Tensor]

    @classmethod
    def of_blocks(cls, data: Tensor, format: str) -> Planes:
        """Of rows of blocks, as files have them. Shapes: data (rows, blocks * size) of bytes.

        Raises: ValueError for an unknown format.
        """
        return cls.of_bytes(data.tobytes(), data.shape[0], format, data.device)

    @classmethod
    def of_bytes(cls, data: bytes | memoryview, rows: int, format: str, device: DeviceLike = None) -> Planes:
        """Of the bytes of rows of blocks, which no device takes apart. Raises: ValueError for an unknown format."""
        known, view = format_named(format), memoryview(data)
        blocks = len(view) // known.size
        tensors = {}
        for plane in known.planes:
            part = bytearray(blocks * plane.size)
            for index in range(plane.size):
                part[index :: plane.size] = view[plane.start + index :: known.size]
            shape = (rows, blocks // rows * plane.count)
            tensors[plane.name] = create.frombytes(part, plane.dtype, shape, device)
        return cls(format, tensors)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the weight."""
        known = FORMATS[self.format]
        rows, width = self.tensors[known.planes[0].name].shape
        return rows, width // known.planes[0].count * known.elements

    def to(self, device: DeviceLike) -> Planes:
        """The same on a device."""
        target = devices.open_device(device).name
        return Planes(self.format, {name: tensor.to(target) for name, tensor in self.tensors.items()})


def format_named(name: str) -> Quantized:
    """A format. Raises: ValueError for an unknown one."""
    if name not in FORMATS:
        raise ValueError(f"quantize: the format {name!r} is not known; known are {', '.join(FORMATS)}")
    return FORMATS[name]


def quantize(model: Module, format: str = "q4_1", *, skip: Sequence[str] = ()) -> Module:
    """Replaces the Linear and Embedding layers of a model by layers whose weights are quantised. Returns the model.

    format: "q4_0", "q4_1", "q8_0", "q4_k" or "q6_k".  skip: names of layers, or of modules that hold some, which stay.
    Layers that share a weight share it afterwards. Those whose rows are no whole blocks stay as they are.
    Raises: ValueError for an unknown format, and for a model that is itself a layer.
    """
    known = format_named(format)
    if type(model) in (Linear, Embedding):
        raise ValueError("quantize: it replaces layers of a model; quantized_layer makes one")
    quantized_weights: dict[int, Planes] = {}
    for path, layer in list(model.named_modules(remove_duplicate=False)):
        if type(layer) not in (Linear, Embedding) or any(f"{path}.".startswith(f"{name}.") for name in skip):
            continue
        weight = layer.weight
        assert isinstance(weight, Tensor)
        if weight.shape[1] % known.elements == 0:
            if id(weight) not in quantized_weights:
                data = block_formats.quantize(weight, block_formats.FORMATS[format])
                quantized_weights[id(weight)] = Planes.of_blocks(data, format)
            model.set_submodule(path, quantized_layer(layer, quantized_weights[id(weight)]))
    return model


def quantized_layer(layer: Module, weight: Planes) -> Module:
    """A Linear or Embedding layer with another weight. Raises: ValueError for weights of another shape."""
    own = layer.weight
    assert isinstance(own, Tensor)
    if tuple(own.shape) != weight.shape:
        raise ValueError(f"quantize: the layer's weight is {tuple(own.shape)}, the quantised one {weight.shape}")
    if isinstance(layer, Embedding):
        return QuantizedEmbedding(weight).train(layer.training)
    bias = layer.bias
    assert bias is None or isinstance(bias, Parameter)
    return QuantizedLinear(weight, bias).train(layer.training)


class _Quantized(Module):
    """A weight (rows, columns) in the planes of a format, which are buffers of their names."""

    def __init__(self, weight: Planes) -> None:
        super().__init__()
        self.format = weight.format
        for name, tensor in weight.tensors.items():
            self.register_buffer(name, tensor)

    @property
    def planes(self) -> list[Tensor]:
        """The parts of the weight, in the order of its format."""
        return [self.get_buffer(plane.name) for plane in FORMATS[self.format].planes]

    @property
    def weight(self) -> Tensor:
        """The numbers that the weight stands for: float32 (rows, columns), computed when they are read."""
        return apply(quantized.dequantize, *self.planes, format=self.format)


class QuantizedLinear(_Quantized):
    """x weight^T + bias. Shapes: x (..., in_features), weight (out_features, in_features) -> (..., out_features)."""

    def __init__(self, weight: Planes, bias: Parameter | None = None) -> None:
        super().__init__(weight)
        self.out_features, self.in_features = weight.shape
        self.register_parameter("bias", bias)

    def forward(self, input: Tensor) -> Tensor:
        return apply(quantized.linear, input, *self.planes, format=self.format, bias=self.bias)

    def extra_repr(self) -> str:
        bias = self.bias is not None
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={bias}, format={self.format}"


class QuantizedEmbedding(_Quantized):
    """Rows of a weight, by number. Shapes: input (...) of whole numbers -> (..., embedding_dim) float32."""

    def __init__(self, weight: Planes) -> None:
        super().__init__(weight)
        self.num_embeddings, self.embedding_dim = weight.shape

    def forward(self, input: Tensor) -> Tensor:
        return apply(quantized.embedding, input, *self.planes, format=self.format)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, format={self.format}"
