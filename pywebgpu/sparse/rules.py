"""What functions of torch do with sparse tensors: those that are not methods of their names.

Where there is neither a rule nor a method, a function sees the dense tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pywebgpu.sparse import SparseTensor, addmm, compressed, mm
from pywebgpu.support import closed_types
from pywebgpu.tensor import create, dispatch, output_rules, random
from pywebgpu.tensor.tensor import Tensor

SPACES = ("pywebgpu", "torch", "pywebgpu.special", "pywebgpu.nn.functional")  # whose functions methods stand for


def call(func: Callable[..., Any], types: Iterable[type], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """The result of a function some of whose arguments are sparse."""
    options, name = dict(options), getattr(func, "__name__", "")
    if not args and isinstance(options.get("input"), Tensor):
        args = (options.pop("input"),)
    rule = _rule(func, name, args)
    if rule is None:
        return dispatch.disabled(func, types, args, options)
    out = options.pop("out", None)
    result: Any = dispatch.disabled(rule, types, args, options)
    if out is None:
        return result
    if isinstance(out, SparseTensor):
        return out._take(result)
    if isinstance(result, SparseTensor):
        raise RuntimeError(f"{name}: Expected `out` of layout {result.layout}, but got one of layout {out.layout}")
    return dispatch.disabled(output_rules.into, types, (out, result, name))


def _rule(func: Callable[..., Any], name: str, args: Sequence[Any]) -> Callable[..., Any] | None:
    home = getattr(func, "__module__", "")
    if home not in SPACES and not home.startswith("pywebgpu.tensor."):
        return None
    if name in RULES:
        return RULES[name]
    if not args or not isinstance(args[0], SparseTensor):
        return None
    for kind in type(args[0]).__mro__:
        if kind is Tensor:
            return None
        method = vars(kind).get(name)
        if callable(method):
            return method  # type: ignore[no-any-return]
    return None


def _like(name: str, fill: Callable[..., Tensor] | None) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        *args: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> Tensor:
        dtype, device = dtype or input.dtype, device or input.device
        own, layout = input.layout, layout or input.layout
        if options.get("memory_format") is not None and layout is not closed_types.strided:
            raise RuntimeError("memory format option is only supported by strided tensors")
        if name == "empty_like" and own is not layout and own in compressed.KINDS and layout in compressed.KINDS:
            raise RuntimeError(
                f"empty_like with different sparse layout is not supported (self is {own}, but {layout})"
            )
        if layout is closed_types.strided:
            result = create.zeros(input.shape, dtype=dtype, device=device)
            result = result if fill is None else fill(result, *args)
        elif not isinstance(input, SparseTensor):
            result = compressed.empty(layout, input.shape, dtype, device)
        elif name != "zeros_like" and layout is input.layout and layout is not closed_types.sparse_coo:
            values = input._values().detach().to(dtype=dtype, device=device)
            result = input._like(create.empty_like(values) if fill is None else fill(values, *args))
        else:
            result = compressed.cleared(input, layout, dtype, device)
        return result.requires_grad_() if requires_grad else result

    function.__name__ = name
    return function


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """A product of matrices, one of which is sparse."""
    return mm(input, other)


def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    if isinstance(input, SparseTensor):
        product = mm(mat1, mat2)
        scaled = product * alpha if alpha != 1 else product
        both = (input * beta if beta != 1 else input) + scaled
        return both if isinstance(both, SparseTensor) else both.to_sparse(**input._layout_options())
    return addmm(input, mat1, mat2, beta=beta, alpha=alpha)


RULES: dict[str, Callable[..., Any]] = {
    "zeros_like": _like("zeros_like", None),
    "empty_like": _like("empty_like", None),
    "rand_like": _like("rand_like", random.rand_like),
    "randn_like": _like("randn_like", random.randn_like),
    "mm": mm,
    "matmul": matmul,
    "mv": mm,
    "addmm": _addmm,
}
