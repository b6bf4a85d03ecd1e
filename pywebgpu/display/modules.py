"""Modules and optimizers as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from pywebgpu.display import html
from pywebgpu.nn.module import Module
from pywebgpu.optim.optimizer import Optimizer
from pywebgpu.tensor.tensor import Tensor

OPEN = 2  # levels of the tree that are shown at first
MOST = 400  # modules that are shown


def module_html(module: Module) -> str:
    """A tree: of each module its class, its parameters' shapes, how many numbers they are and how many bytes."""
    parameters = list(module.parameters())
    count, size = _sizes(parameters)
    where = ", ".join(dict.fromkeys(f"{parameter.dtype} on {parameter.device}" for parameter in parameters))
    frozen = sum(parameter.numel() for parameter in parameters if not parameter.requires_grad)
    facts = [f"{count:,} parameters", html.amount(size), where, "" if module.training else "eval"]
    facts += [f"{frozen:,} frozen"] if frozen else []
    left = iter(range(MOST))
    return html.card(html.head(type(module).__name__, facts), *_inside(module, 1, left))


def _inside(module: Module, level: int, left: Iterator[int]) -> Iterator[str]:
    own: list[tuple[str, Tensor, str]] = [
        (name, value, "") for name, value in module._parameters.items() if value is not None
    ]
    own += [(name, value, "buffer, ") for name, value in module._buffers.items() if value is not None]
    for name, tensor, kind in own:
        frozen = "" if tensor.requires_grad or kind else ", frozen"
        shape = " x ".join(map(str, tensor.shape)) or "a number"
        said = f"{kind}{html.amount(tensor.nbytes)}{frozen}"
        yield (
            f'<div style="margin-left:18px"><code>{html.escape(name)}</code> {html.escape(shape)} '
            f'<span style="{html.SOFT}">{html.escape(said)}</span></div>'
        )
    for name, child in module._modules.items():
        if child is None:
            continue
        if next(left, None) is None:
            yield f'<div style="margin-left:18px;{html.SOFT}">…</div>'
            return
        yield _branch(name, child, level, left)


def _branch(name: str, module: Module, level: int, left: Iterator[int]) -> str:
    count, size = _sizes(list(module.parameters()))
    extra = module.extra_repr().replace("\n", ", ")
    said = (
        f"{html.escape(type(module).__name__)}({html.escape(extra)})" if extra else html.escape(type(module).__name__)
    )
    numbers = f'<span style="{html.SOFT}">{count:,} · {html.escape(html.amount(size))}</span>' if count else ""
    title = f"<code>{html.escape(name)}</code> {said} {numbers}"
    inside = "".join(_inside(module, level + 1, left))
    if not inside:
        return f'<div style="margin-left:18px">{title}</div>'
    shown = " open" if level < OPEN else ""
    return f'<details{shown} style="margin-left:4px"><summary>{title}</summary>{inside}</details>'


def _sizes(tensors: Sequence[Tensor]) -> tuple[int, int]:
    return sum(tensor.numel() for tensor in tensors), sum(tensor.nbytes for tensor in tensors)


def treescope(module: Module, path: object, subtree_renderer: object) -> object:
    """What treescope, which calls this, shows: parameters, buffers and modules as fields that open."""
    repr_lib: Any = import_module("treescope.repr_lib")
    fields = {**module._parameters, **module._buffers, **module._modules}
    return repr_lib.render_object_constructor(type(module), fields, path, subtree_renderer)


def optimizer_html(optimizer: Optimizer) -> str:
    """A table: a column for each group, a row for each option; what its state takes."""
    groups = optimizer.param_groups
    names = list(dict.fromkeys(name for group in groups for name in group if name != "params"))
    rows: list[list[object]] = [["parameters", *(len(group["params"]) for group in groups)]]
    rows.append(["numbers", *(f"{_sizes(group['params'])[0]:,}" for group in groups)])
    rows += [[name, *(_shown(group.get(name, "")) for group in groups)] for name in names]
    held = {
        id(value): value
        for state in list(optimizer.state.values())
        for value in state.values()
        if hasattr(value, "nbytes")
    }
    size = sum(value.nbytes for value in held.values())
    facts = [
        f"{len(groups)} group{'s' if len(groups) > 1 else ''}",
        f"state {html.amount(size)}" if size else "no state",
    ]
    heads = ["", *(f"group {index}" for index in range(len(groups)))]
    return html.card(html.head(type(optimizer).__name__, facts), html.table(heads, rows))


def _shown(value: object) -> str:
    """An option; a tensor by its kind, since reading it would wait."""
    return f"Tensor {tuple(value.shape)}" if isinstance(value, Tensor) else str(value)
