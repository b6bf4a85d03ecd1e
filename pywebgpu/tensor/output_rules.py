"""`out=`: what functions give is written into tensors of the caller's, under the rules that PyTorch has for them.

Apart from outputs.py because few programs pass it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic
from pywebgpu.dtypes import DType
from pywebgpu.ir.graph import thread_state
from pywebgpu.tensor import history, overlap
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.layout import strides_of

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

R = TypeVar("R")
Output = TensorBase | Sequence[TensorBase]

OF_OUT = {"cumprod", "cumsum", "prod", "sum"}  # They compute in the dtype of `out`.
_WITHOUT_OUT = {
    "adjoint", "allclose", "argsort", "argwhere", "as_strided", "bincount", "broadcast_to", "chunk", "clone", "conj",
    "count_nonzero", "detach", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "dist", "dsplit", "equal",
    "flatten", "flip", "fliplr", "flipud", "hsplit", "index_fill", "index_put", "is_complex", "is_conj",
    "is_floating_point", "is_inference", "is_neg", "is_nonzero", "is_same_size", "is_signed", "isclose", "isfinite",
    "isinf", "isnan",
    "isreal", "istft", "masked_fill", "masked_scatter", "moveaxis", "movedim", "narrow", "numel", "permute",
    "positive", "put", "ravel", "relu", "repeat_interleave", "reshape", "resolve_conj", "resolve_neg", "roll", "rot90",
    "rsub", "select", "select_scatter", "split", "split_with_sizes", "squeeze", "stft", "swapaxes", "swapdims", "t",
    "tensor_split", "tile", "trace", "transpose", "unbind", "unflatten", "unique", "unique_consecutive", "unsqueeze",
    "vsplit",
}  # fmt: skip
_OF_AN_AXIS = {"median", "nanmedian", "prod", "sum"}  # They take `out` where an axis is given.
# What reads elements of its inputs after it wrote others.
APART = frozenset((
    "bernoulli", "cat", "cross", "gather", "index_select", "kthvalue", "masked_select", "stack", "take",
    "take_along_dim", "linalg.cross", "nn.functional.avg_pool2d",
))  # fmt: skip
# Functions whose `out` is of the result's dtype, where others cast. Names are PyTorch's, with those of its modules.
SAME_DTYPE = frozenset((
    "abs", "addbmm", "addmm", "addmv", "alias_copy", "all", "amax", "amin", "aminmax", "any", "argmax",
    "argmin", "as_strided_copy", "baddbmm", "bitwise_not", "bmm", "bucketize", "ceil", "conj_physical", "cross",
    "cummax", "cummin", "detach_copy", "diag", "diagonal_copy", "diff", "dot", "expand_copy", "fix",
    "float_power", "floor", "frac", "frexp", "gather", "hash_tensor", "heaviside", "histc", "histogram",
    "index_add", "index_copy", "index_reduce", "index_select", "inner", "isin", "isneginf", "isposinf",
    "kthvalue", "log_softmax", "logcumsumexp", "lu_solve", "lu_unpack", "masked_select", "matmul", "max",
    "median", "min", "mm", "mode", "msort", "multinomial", "mv", "nan_to_num", "nanmedian", "nanquantile",
    "narrow_copy", "native_batch_norm", "neg", "negative", "nonzero", "norm", "ormqr", "permute_copy", "qr",
    "quantile", "renorm", "round", "scatter", "scatter_add", "scatter_reduce", "searchsorted", "select_copy",
    "sgn", "sign", "signbit", "slice_scatter", "softmax", "sort", "split_copy", "split_with_sizes_copy",
    "squeeze_copy", "svd", "t_copy", "take", "take_along_dim", "tensordot", "topk", "transpose_copy",
    "triangular_solve", "tril", "triu", "trunc", "unbind_copy", "unfold_copy", "unsqueeze_copy", "vdot",
    "view_as_complex_copy", "view_as_real_copy", "view_copy", "where", "fft.ifft", "fft.ihfft",
    "linalg.cholesky", "linalg.cholesky_ex", "linalg.cross", "linalg.det", "linalg.eigh", "linalg.eigvalsh",
    "linalg.inv", "linalg.inv_ex", "linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve", "linalg.lu",
    "linalg.lu_factor", "linalg.lu_factor_ex", "linalg.lu_solve", "linalg.matrix_norm", "linalg.multi_dot",
    "linalg.norm", "linalg.qr", "linalg.slogdet", "linalg.solve", "linalg.solve_ex", "linalg.solve_triangular",
    "linalg.svd", "linalg.svdvals", "linalg.vecdot", "linalg.vector_norm", "nn.functional.avg_pool2d",
    "nn.functional.gelu", "nn.functional.hardshrink", "nn.functional.linear", "nn.functional.logsigmoid",
    "nn.functional.softplus", "nn.functional.softshrink",
))  # fmt: skip
FLAGS = frozenset(("all", "any"))  # Of these, whose flags may be bytes.
CASTING_ALONE = frozenset(("max", "min"))  # Of these, which cast where they give one tensor.
# Those that raise TypeError for a dtype.
JOINING = frozenset(("_chunk_cat", "cat", "column_stack", "dstack", "hstack", "stack", "vstack"))
# Those whose real results are not written as complex numbers.
REAL = frozenset((
    "bernoulli", "nanmean", "nansum", "fft.hfft", "fft.hfft2", "fft.hfftn", "fft.irfft", "fft.irfft2",
    "fft.irfftn",
))  # fmt: skip
# What the values of a function are called, where it has several.
PARTS = {"linalg.eig": ("eigenvalues", "eigenvectors"), "linalg.eigvals": ("eigenvalues",)}
LETTERS = {"int32": "int", "int64": "long", "float32": "float", "float64": "double"}  # PyTorch's other words
# Those that give `out` the shape of the result without a warning.
QUIET = frozenset(("addbmm", "bernoulli", "multinomial", "narrow_copy", "nn.functional.logsigmoid"))
RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the required output "
    "shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
    "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
    "t.resize_(0)."
)


def takes_out(name: str, args: Sequence[object], options: Mapping[str, object]) -> bool:
    """Whether the function of a method has an `out` when it is called so."""
    if name in _OF_AN_AXIS and len(args) == 1 and "dim" not in options:
        return False
    return name not in _WITHOUT_OUT and not name.endswith("_")


def check(name: str, out: Output, inputs: Sequence[object]) -> None:
    """Raises RuntimeError for an `out` that shows one element twice, or the memory of an input."""
    tensors = [item for item in inputs if isinstance(item, TensorBase)]
    tensors += [part for item in inputs if isinstance(item, tuple | list) for part in item if _is_tensor(part)]
    for target in (out,) if isinstance(out, TensorBase) else out:
        if not isinstance(target, TensorBase):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
        shape, steps = target.shape, strides_of(target)[0]
        if any(n > 1 and step == 0 for n, step in zip(shape, steps, strict=True)):
            raise RuntimeError(
                "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                "location. Please clone() the tensor before performing the operation."
            )
        for item in tensors:
            if name in APART:
                overlap.check_apart(target, item)
            elif item.ndim <= len(shape):  # Else it reads more than it writes.
                overlap.check(target, item)


def _is_tensor(value: object) -> bool:
    return isinstance(value, TensorBase)


def into(out: Output, result: R, name: str, *, is_quiet: bool = False) -> R:
    """Writes a result, or several, into the tensors of an `out` argument and returns them. name: the function's."""
    is_alone = not isinstance(result, tuple)
    targets: Any = (out,) if is_alone else out
    parts: Any = (result,) if is_alone else result
    if isinstance(targets, TensorBase) or len(targets) != len(parts):
        raise TypeError(f"{name}(): argument 'out' must be tuple of {len(parts)} Tensors")
    names = PARTS.get(name, ("result",) * len(parts))
    for target, part, known in zip(targets, parts, names, strict=True):
        _check(target, part, name, known, is_alone=is_alone)
    for target, part in zip(targets, parts, strict=True):
        _write(target, part, is_quiet=is_quiet or name in QUIET)
    written: Any = result._make(targets) if hasattr(result, "_make") else out
    return written  # type: ignore[no-any-return]


def _check(out: Tensor, result: Tensor, name: str, part: str, *, is_alone: bool) -> None:
    if history.tangent_of is not None and any(history.tangent_of(x) is not None for x in (out, result)):
        raise RuntimeError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    if thread_state.grad and (out.requires_grad or result.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if out._storage.device is not result._storage.device:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: Expected out tensor to have device "
            f"{result.device}, but got {out.device} instead"
        )
    wanted, result_dtype = out.dtype, result.dtype
    if wanted is result_dtype or (name in FLAGS and wanted is dtypes.uint8):
        return
    if name in SAME_DTYPE and not (is_alone and name in CASTING_ALONE):
        raise RuntimeError(
            f"{name}(): Expected out tensor to have scalar type {result_dtype.title} but got scalar type {wanted.title}"
            f": expected dtype {result_dtype.name}, but got {LETTERS.get(wanted.name, wanted.name)} instead"
        )
    if name == "bernoulli" and not wanted.is_complex:
        return
    if not may_hold(wanted, result_dtype) or (name in REAL and wanted.is_complex > result_dtype.is_complex):
        kind = TypeError if name in JOINING else RuntimeError
        raise kind(
            f"{name}(): result type {result_dtype.title} can't be cast to the desired output type {wanted.title}: "
            f"Expected {part} to be safely castable, but got {part} with dtype {wanted.title}"
        )


def may_hold(wanted: DType, source: DType) -> bool:
    """Whether a result may be stored as another dtype: a kind may widen, and never narrow."""
    return source.kind <= wanted.kind and source.is_complex <= wanted.is_complex


def _write(out: Tensor, result: Tensor, *, is_quiet: bool) -> None:
    """Gives `out` the shape and the values of a result."""
    if tuple(out.shape) != tuple(result.shape):
        if out.numel() and not is_quiet:
            warnings.warn(RESIZED.format(list(out.shape), list(result.shape)), UserWarning, stacklevel=4)
        out.resize_(result.shape)
    out._assign(arithmetic.cast(result._node, out.dtype))
