"""Facts of dtypes (finfo, iinfo), and the constructors that torch had before dtypes: FloatTensor and its like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from pywebgpu import dtypes
from pywebgpu.dtypes import DType, Kind
from pywebgpu.tensor import create
from pywebgpu.tensor.conversion import LEGACY
from pywebgpu.tensor.size import Size
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.tensor.factory_options import DeviceLike

_FRACTION = {
    "float64": (52, -1022), "float32": (23, -126), "float16": (10, -14), "bfloat16": (7, -126),
    "float8_e4m3fn": (3, -6), "float8_e5m2": (2, -14), "float8_e4m3fnuz": (3, -7), "float8_e5m2fnuz": (3, -15),
    "float8_e8m0fnu": (0, -127),
}  # fmt: skip
_RESOLUTION = {"float64": 1e-15, "float32": 1e-06, "float16": 1e-03, "bfloat16": 1e-02}


class _Limits:
    """Equal to those of the same dtype."""

    __slots__ = ("dtype",)
    dtype: str

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


class finfo(_Limits):
    """Limits of a floating dtype."""

    __slots__ = ("bits", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: DType | None = None) -> None:
        dtype = dtypes.default() if type is None else _dtype("finfo", type)
        dtype = dtype.part or dtype
        if dtype.kind is not Kind.FLOAT:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{dtype}'")
        fraction, exponent = _FRACTION[dtype.name]
        self.bits, self.dtype = dtype.itemsize * 8, dtype.name
        self.eps, self.tiny = 2.0**-fraction, 2.0**exponent
        self.smallest_normal, self.max, self.min = self.tiny, float(dtype.high), float(dtype.low)
        self.resolution = _RESOLUTION.get(dtype.name, 1.0)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """Limits of an integer dtype."""

    __slots__ = ("bits", "max", "min")

    def __init__(self, type: DType) -> None:
        if _dtype("iinfo", type).kind is not Kind.INT:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        self.bits, self.dtype = type.itemsize * 8, type.name
        self.max, self.min = int(type.high), int(type.low)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _dtype(name: str, dtype: object) -> DType:
    if not isinstance(dtype, DType):
        raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {type(dtype).__name__}")
    return dtype


@dataclass(frozen=True, slots=True)
class LegacyType:
    """torch.FloatTensor, torch.cuda.FloatTensor and their like: called with data or with sizes."""

    name: str
    dtype: DType
    device: str | None = None

    def __call__(self, *args: Any, device: DeviceLike = None) -> Tensor:
        device = device or self.device
        if len(args) == 1 and hasattr(args[0], "_as_tensor"):  # A storage.
            return args[0]._as_tensor(self.dtype)  # type: ignore[no-any-return]
        if len(args) == 1 and not isinstance(args[0], int | Size):
            return create.tensor(args[0], dtype=self.dtype, device=device)
        return create.zeros(*(args or (0,)), dtype=self.dtype, device=device)

    def __repr__(self) -> str:
        return f"<class 'torch.{self.name}'>"

    def __or__(self, other: object) -> object:
        """In annotations: FloatTensor | None."""
        return Union[self, other]  # noqa: UP007 - it is no class

    def __ror__(self, other: object) -> object:
        return Union[other, self]  # noqa: UP007

    def __instancecheck__(self, instance: object) -> bool:
        if not isinstance(instance, Tensor) or self.device not in (None, instance.device.type):
            return False
        return instance.dtype is self.dtype


def legacy(prefix: str = "", device: str | None = None) -> dict[str, LegacyType]:
    return {name: LegacyType(prefix + name, dtype, device) for name, dtype in LEGACY.items()}


def legacy_dtype(kind: object) -> DType:
    """The dtype of a legacy type or of its name."""
    if isinstance(kind, LegacyType):
        return kind.dtype
    return LEGACY[str(kind).rpartition(".")[2]]


# Functions of layers that torch has in its own namespace too.
FUNCTIONAL = {
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "batch_norm", "bilinear",
    "binary_cross_entropy_with_logits", "celu", "celu_", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "channel_shuffle", "conv_transpose2d", "conv_transpose3d", "ctc_loss", "embedding_bag",
    "cosine_embedding_loss", "cosine_similarity", "dropout", "embedding",
    "feature_alpha_dropout", "group_norm", "hardshrink", "hinge_embedding_loss", "instance_norm",
    "kl_div", "layer_norm", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance",
    "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "rms_norm", "rrelu", "rrelu_", "selu", "selu_",
    "threshold", "threshold_", "triplet_margin_loss",
}  # fmt: skip
