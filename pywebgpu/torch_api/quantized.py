"""The dtypes and schemes of PyTorch's quantised models. They can be named and compared; no tensor has one here."""

from pywebgpu.dtypes import DType, Kind
from pywebgpu.support import formats
from pywebgpu.support.closed_types import Closed


def _quantized(name: str, size: int, format: formats.Format) -> DType:
    return DType._value(
        name=name, title=name.replace("qui", "QUI").replace("qi", "QI"), kind=Kind.INT, itemsize=size, compute=None,
        format=format, code="", low=0, high=0, family="quantized", part=None,
    )  # fmt: skip


qint8, quint8 = _quantized("qint8", 1, formats.I8), _quantized("quint8", 1, formats.U8)
quint4x2, quint2x4 = _quantized("quint4x2", 1, formats.U8), _quantized("quint2x4", 1, formats.U8)
qint32 = _quantized("qint32", 4, formats.I32)


class QScheme(Closed, title="torch.qscheme"):
    """How numbers are quantised."""

    __slots__ = ()


qscheme = QScheme
_NAMES = (
    "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)  # fmt: skip
(
    per_tensor_affine,
    per_channel_affine,
    per_tensor_symmetric,
    per_channel_symmetric,
    per_channel_affine_float_qparams,
) = SCHEMES = tuple([QScheme._value(name=name) for name in _NAMES])
