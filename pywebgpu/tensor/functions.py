"""Functions of the torch namespace: every method as a function of its tensor, and functions of several tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from pywebgpu import dtypes
from pywebgpu.composites import arithmetic, elementwise, joining
from pywebgpu.dtypes import DType
from pywebgpu.step_capture.free_number import NUMBERS
from pywebgpu.support import shapes
from pywebgpu.tensor import create, output_rules, outputs, pointwise, reduction
from pywebgpu.tensor.apply import apply
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.methods import ALIASES, OPERANDS, aliased, also_named
from pywebgpu.tensor.size import Size
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from types import ModuleType

    from pywebgpu.tensor.types import Operand, Sizes

# Methods that torch has on tensors only.
METHODS = {
    "apply_", "map_", "map2_", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc",
    "sparse_mask",
    "ccol_indices", "crow_indices", "col_indices", "row_indices",
    "geqrf", "lu", "lu_solve", "orgqr", "ormqr", "triangular_solve",
    "frexp", "hash_tensor", "nextafter", "nextafter_", "histogram", "nonzero_static",
    "cholesky", "qr", "svd", "cholesky_inverse", "cholesky_solve", "prelu", "hardshrink",
    "to_sparse", "to_sparse_coo", "to_dense", "coalesce", "indices", "values", "is_coalesced", "sparse_dim",
    "dense_dim",
    "corrcoef", "cov", "det", "digamma", "inverse", "kron", "ldexp", "lgamma", "logdet", "matrix_exp",
    "mvlgamma", "pinverse", "polygamma", "polygamma_", "renorm", "mvlgamma_", "slogdet", "as_strided_scatter",
    "narrow_copy", "new_empty_strided", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "as_subclass",
    "dim_order", "record_stream", "digamma_", "lgamma_", "renorm_", "sgn_", "backward",
    "bfloat16", "bool", "byte", "cat", "cdouble", "cfloat", "chalf", "char", "contiguous", "copy_", "cpu", "cuda",
    "data", "data_ptr", "device", "dim", "double", "dtype", "element_size", "expand", "expand_as", "float",
    "get_device", "grad", "grad_fn", "H", "half", "int", "is_contiguous", "is_cpu", "is_cuda",
    "is_leaf", "is_meta", "is_mps", "is_nested", "is_pinned", "is_quantized", "is_set_to", "is_shared", "is_sparse",
    "is_webgpu", "is_xpu", "item", "itemsize", "layout", "long", "mH", "mT", "names", "nbytes", "ndim", "ndimension",
    "nelement", "new", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "numpy", "output_nr",
    "pin_memory", "register_hook", "register_post_accumulate_grad_hook", "repeat", "requires_grad", "requires_grad_",
    "reshape_as", "resize_", "retain_grad", "retains_grad", "set_", "shape", "share_memory_", "short", "size",
    "storage", "storage_offset", "stride", "T", "to", "tobytes", "tolist", "type", "type_as", "unfold",
    "untyped_storage", "view", "view_as", "webgpu", "where",
}  # fmt: skip
# A number on the left of a tensor: torch.pow(2, x).
REFLECTED = {
    "pow": "__rpow__", "sub": "__rsub__", "add": "__radd__", "mul": "__rmul__", "div": "__rtruediv__",
    "divide": "__rtruediv__", "subtract": "__rsub__", "multiply": "__rmul__",
    "true_divide": "__rtruediv__", "remainder": "__rmod__", "floor_divide": "__rfloordiv__",
    "bitwise_and": "__rand__", "bitwise_or": "__ror__", "bitwise_xor": "__rxor__",
    "bitwise_left_shift": "__rlshift__", "bitwise_right_shift": "__rrshift__",
}  # fmt: skip


def generated() -> dict[str, Any]:
    """name -> function, for every public method that torch also has as a function."""
    names = [name for name in dir(Tensor) if not name.startswith("_") and name not in METHODS]
    return {name: _function(name, getattr(Tensor, name)) for name in names if callable(getattr(Tensor, name))}


_NUMPYS = ALIASES | OPERANDS


def _function(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def function(*args: Any, out: Any = None, **options: Any) -> Any:
        if options:
            options = {_NUMPYS.get(key, key): value for key, value in options.items()}
            if not args and "input" in options:
                args = (options.pop("input"),)
        if out is not None:
            if not output_rules.takes_out(name, args, options):
                raise TypeError(f"{name}() got an unexpected keyword argument 'out'")
            output_rules.check(name, out, args)
            if name in output_rules.OF_OUT:
                options.setdefault("dtype", out.dtype)
        if args and isinstance(args[0], TensorBase):
            result = method(*args, **options)
        elif args:
            result = _number_first(name, args[0], args[1:], options)
        else:
            raise TypeError(f'{name}() missing 1 required positional arguments: "input"')
        return result if out is None else output_rules.into(out, result, name)

    function.__module__, function.__qualname__ = "pywebgpu", name  # Where it is found by its name.
    return function


OF_NUMBERS = frozenset(
    ("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide", "floor_divide")
)  # which take two numbers, too


def _number_first(name: str, first: object, args: tuple[Any, ...], options: dict[str, Any]) -> object:
    """torch.pow(2, x): the operator of a number and a tensor."""
    if name in REFLECTED and args and isinstance(args[0], TensorBase) and isinstance(first, NUMBERS):
        if options and name in ("div", "divide"):
            return apply(arithmetic.div, first, *args, **options)
        if not options:
            return getattr(args[0], REFLECTED[name])(first)
    if name in ("xlogy", "float_power") and args and isinstance(args[0], TensorBase) and isinstance(first, NUMBERS):
        return apply(getattr(elementwise, name), first, *args)
    if name in OF_NUMBERS and args and isinstance(first, NUMBERS) and isinstance(args[0], NUMBERS):
        return getattr(create.tensor(first, device="cpu"), name)(*args, **options)
    raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(first).__name__}")


# Dtypes


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of one dtype may be stored as another: a kind may widen, and never narrow."""
    return output_rules.may_hold(to, from_)


def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype that holds both."""
    return dtypes.promote(type1, type2)


def result_type(tensor1: Operand, tensor2: Operand) -> DType:
    """The dtype of an operation on two tensors or numbers."""
    for operand in (tensor1, tensor2):
        if not isinstance(operand, (TensorBase, complex, *NUMBERS)):
            raise TypeError(f"result_type() received an invalid combination of arguments: a {type(operand).__name__}")
    operands = [t._node if isinstance(t, TensorBase) else t for t in (tensor1, tensor2)]
    dtype = arithmetic.result_type(*operands)
    return dtypes.to_complex(dtype) if any(type(t) is complex for t in operands) else dtype


def is_tensor(obj: object) -> bool:
    """Whether this is a Tensor."""
    return isinstance(obj, TensorBase)


def is_storage(obj: object) -> bool:
    """Whether this is what `untyped_storage()` or `storage()` gives."""
    return hasattr(obj, "_untyped_storage") or type(obj).__name__ == "UntypedStorage"


# Joining


@aliased
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along an axis."""
    return outputs.finished("cat", apply(joining.cat, listed("cat", tensors), dim), out, *tensors)


@aliased
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Joins tensors along a new axis."""
    return outputs.finished("stack", apply(joining.stack, listed("stack", tensors), dim), out, *tensors)


def listed(name: str, tensors: Sequence[Tensor]) -> list[Any]:
    if isinstance(tensors, TensorBase):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    listed = list(tensors)
    for index, item in enumerate(listed):
        if not isinstance(item, TensorBase):
            raise TypeError(f"expected Tensor as element {index} in argument 0, but got {type(item).__name__}")
    return listed


# Broadcasting


def broadcast_shapes(*sizes: Any) -> Size:
    """The shape that all shapes broadcast to."""
    listed = [tuple(Size((s,) if isinstance(s, int) else s)) for s in sizes]
    if any(n < 0 for shape in listed for n in shape):
        raise ValueError(f"Attempting to broadcast a dimension with negative length: {listed}")
    return Size(shapes.broadcast_all(listed))


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Views of the tensors in their common shape."""
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if t.shape == shape else t.expand(shape) for t in tensors)


# Others


@overload
def where(condition: TensorBase) -> tuple[Tensor, ...]: ...
@overload
def where(condition: TensorBase, input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...
@also_named(x="input", a="input", x1="input")
def where(
    condition: TensorBase, input: Operand | None = None, other: Operand | None = None, *, out: Tensor | None = None
) -> object:
    """`input` where the condition holds, else `other`; alone, the positions where it holds."""
    result: object = pointwise.where(condition, input, other)  # type: ignore[arg-type]
    return outputs.finished("where", result, out, condition, input, other)


@aliased
def split(tensor: Tensor, split_size_or_sections: Sizes, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of one size, or of the sizes in a list, along an axis."""
    return tensor.split(split_size_or_sections, dim)


def numel(input: Tensor) -> int:
    """How many elements a tensor has."""
    return int(input.numel())


trapz = trapezoid = reduction.trapezoid
concat = concatenate = cat


def public(module: ModuleType) -> dict[str, Any]:
    """The functions that a module defines for users."""
    hidden = {"generated", "listed", "public", "frombytes", "filled", "seed_node"}
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", "") == module.__name__
        if not name.startswith("_") and name not in hidden
    } | ({"trapz": trapezoid, "trapezoid": trapezoid} if module.__name__ == __name__ else {})
