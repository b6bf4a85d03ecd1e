"""What functions do with masked tensors, by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pywebgpu.sparse import SparseTensor
from pywebgpu.support import closed_types
from pywebgpu.tensor import create, functions
from pywebgpu.tensor.tensor import Tensor
from pywebgpu.torch_api import masked
from pywebgpu.torch_api.masked.maskedtensor import binary, reductions, unary

if TYPE_CHECKING:
    from pywebgpu.torch_api.masked.maskedtensor.core import MaskedTensor

UNARY, BINARY = frozenset(unary.UNARY_NAMES), frozenset(binary.BINARY_NAMES)
REDUCTIONS = frozenset(reductions.REDUCE_NAMES)
# Those that move elements: the mask moves as the data do.
_MOVING = """
    __get__ __getitem__ cat chunk col2im concat expand expand_as flatten fold im2col index movedim permute reshape
    select slice split squeeze stack swapaxes t transpose unbind unflatten unfold unsqueeze view
"""
# Those that change each element's dtype or device, or make other data, and no mask.
_KEEPING = "_to_copy clone detach bool float16 float32 float64 int8 int16 int32 int64 ones_like zeros_like full_like"
# Those that tell about the data.
_TELLING = """
    __len__ dim element_size get_device is_complex is_floating_point is_signed item ndimension nelement numel
    register_hook retain_grad size storage_offset stride tolist
    """

MOVING, KEEPING, TELLING = (frozenset(names.split()) for names in (_MOVING, _KEEPING, _TELLING))


def call(func: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The result of a function some of whose arguments are masked. Raises TypeError for one that has no rule."""
    name = getattr(func, "__name__", "")
    if not args and "input" in options:
        args, options = (options["input"],), {key: value for key, value in options.items() if key != "input"}
    if name in RULES:
        return RULES[name](*args, **options)
    if name in REDUCTIONS:
        return _reduced(name, *args, **options)
    stem = name.removesuffix("_")
    if stem in UNARY or stem in BINARY:
        result = _elementwise(func, args, options, is_pair=stem in BINARY)
        if stem == name:
            return result
        args[0].__dict__["_masked_data"] = result.get_data()
        return args[0]
    if name in MOVING:
        return _moved(func, args, options)
    if name in KEEPING or name == "to":
        return _of(func(args[0].get_data(), *args[1:], **options), args[0].get_mask())
    if name in TELLING:
        return func(args[0].get_data(), *args[1:], **options)
    raise TypeError(
        f"no implementation found for 'torch._ops.aten.{name}.default' on types that implement __torch_dispatch__: "
        "a MaskedTensor has no rule for it; use get_data() and get_mask()"
    )


def _of(data: Tensor, mask: Tensor) -> MaskedTensor:
    core: Any = import_module("pywebgpu.torch_api.masked.maskedtensor.core")
    return core.MaskedTensor._masking(data, mask.to(data.device))  # type: ignore[no-any-return]


def _is_masked(value: object) -> bool:
    return isinstance(value, Tensor) and "_masked_mask" in getattr(value, "__dict__", ())


def _mapped(value: Any, part: Callable[[Any], Any]) -> Any:
    """An argument with a part of each masked tensor in its place."""
    if isinstance(value, list | tuple) and any(map(_is_masked, value)):
        return type(value)([_mapped(item, part) for item in value])
    return part(value) if _is_masked(value) else value


def _elementwise(
    func: Callable[..., Any], args: Sequence[Any], options: dict[str, Any], *, is_pair: bool
) -> MaskedTensor:
    first = next(value for value in args if _is_masked(value))
    masks = [value.get_mask() for value in args if _is_masked(value)]
    if not is_pair and any(isinstance(value, Tensor) for value in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    if is_pair and any(isinstance(value, Tensor) for value in args[2:]):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    core: Any = import_module("pywebgpu.torch_api.masked.maskedtensor.core")
    if len(masks) > 1 and not core._masks_match(*args[:2]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    data = [_mapped(value, lambda item: item.get_data()) for value in args]
    shape = first.get_data()
    if isinstance(shape, SparseTensor):  # Those of one mask have one set of coordinates.
        values = [item.values() if isinstance(item, SparseTensor) else item for item in data]
        return _of(shape._like(_fresh(func, values, options)), masks[0])
    result = _fresh(func, data, options)
    return _of(result, masks[0].expand(result.shape))


def _fresh(func: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> Tensor:
    """The result of a function that may write into its first argument: into a copy of it."""
    if func.__name__.endswith("_"):
        args = [args[0].clone(), *args[1:]]
    result: Tensor = func(*args, **options)
    return result


def _moved(func: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
    as_numbers = func.__name__ in ("col2im", "fold", "im2col") or "functional" in getattr(func, "__module__", "")
    data = [_mapped(value, lambda item: item.get_data()) for value in args]
    masks = [_mapped(value, lambda item: item.get_mask().float() if as_numbers else item.get_mask()) for value in args]
    result, mask = func(*data, **options), func(*masks, **options)
    if isinstance(result, list | tuple):
        return type(result)([_of(*pair) for pair in zip(result, mask, strict=True)])
    return _of(result, mask.bool() if as_numbers else mask)


def _reduced(
    name: str,
    input: MaskedTensor,
    *args: Any,
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    **options: Any,
) -> MaskedTensor:
    """sum(input, dim, keepdim), and of norm(input, p, dim, keepdim)."""
    data, mask = input.get_data().to_dense(), input.get_mask().to_dense()
    if name == "norm":
        power = args[0] if args else options.pop("p", 2)
        options["ord"], args = 2 if power in (None, "fro") else power, args[1:]
    dim = args[0] if args else dim
    keepdim = args[1] if len(args) > 1 else keepdim
    axes = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if name == "all":
        chosen = data.masked_fill(mask.logical_not(), True)
        result = chosen.all(axes, keepdim) if axes else chosen.all()
    else:
        if name in ("var", "std"):
            options["unbiased"] = options.get("unbiased", options.pop("correction", 1) != 0)
        result = getattr(masked, name)(data, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask, **options)
    return _of(result, mask.any(axes, keepdim) if axes else mask.any())


def _softmax(input: MaskedTensor, dim: int, dtype: Any = None, **options: Any) -> MaskedTensor:
    mask = input.get_mask()
    return _of(masked.softmax(input.get_data(), dim, dtype=dtype, mask=mask), mask)


def _where(condition: Tensor, input: Tensor, other: Tensor) -> MaskedTensor:
    if not isinstance(condition, Tensor):
        raise ValueError("where: expected the condition to be a tensor")
    pair: list[Any] = [
        value if _is_masked(value) else _of(value, create.ones_like(value).bool()) for value in (input, other)
    ]
    data, masks = [item.get_data() for item in pair], [item.get_mask() for item in pair]
    chosen: Any = functions.where  # which gives a tuple where it has a condition alone
    return _of(chosen(condition, *data), chosen(condition, *masks))


def _is_contiguous(input: MaskedTensor, **options: Any) -> bool:
    _require_strided(input, "is_contiguous")
    return input.get_data().is_contiguous(**options)


def _contiguous(input: MaskedTensor, **options: Any) -> MaskedTensor:
    _require_strided(input, "is_contiguous")
    return _of(input.get_data().contiguous(**options), input.get_mask().contiguous())


def _require_strided(input: MaskedTensor, name: str) -> None:
    if isinstance(input.get_data(), SparseTensor):
        raise ValueError(f"MaskedTensors with sparse data do not have {name}")


def _to_dense(input: MaskedTensor, **options: Any) -> MaskedTensor:
    return _of(input.get_data().to_dense(), input.get_mask().to_dense())


def _to_sparse(input: MaskedTensor, **options: Any) -> MaskedTensor:
    mask: Any = input.get_mask().to_dense().to_sparse().coalesce()
    return _of(input.get_data().to_dense().sparse_mask(mask), mask)


def _to_sparse_csr(input: MaskedTensor, **options: Any) -> MaskedTensor:
    if input.dim() != 2:
        raise ValueError(f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {list(input.shape)}")
    if input.layout is closed_types.sparse_csr:
        return input
    mask: Any = input.get_mask().to_dense().to_sparse_csr()
    return _of(input.get_data().to_dense().sparse_mask(mask), mask)


def _copied(target: Any, source: Any, *args: Any) -> Any:
    core: Any = import_module("pywebgpu.torch_api.masked.maskedtensor.core")
    if not core._masks_match(target, source):
        raise ValueError("args[0] mask and args[1] mask must match but do not")
    target.get_data().copy_(source.get_data() if _is_masked(source) else source)
    return target


RULES: dict[str, Callable[..., Any]] = {
    "softmax": _softmax, "_softmax": _softmax, "where": _where, "is_contiguous": _is_contiguous,
    "contiguous": _contiguous, "to_dense": _to_dense, "to_sparse": _to_sparse, "to_sparse_coo": _to_sparse,
    "to_sparse_csr": _to_sparse_csr, "copy_": _copied,
    "cpu": lambda input: _of(input.get_data().cpu(), input.get_mask()),
}  # fmt: skip
