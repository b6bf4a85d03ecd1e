"""The passes, in their order: from the recorded graph to one of which every node has a kernel and every root a buffer.

A pass is a record: what it is for, when it applies, what holds of the graph afterwards. It takes the roots and the
toposorted graph and returns roots of equal values; it matches dataflow, not names. With PYWEBGPU_VERIFY=1, and in
tests, verify.py checks the graph after each.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from pywebgpu.compiler import packed_stores
from pywebgpu.compiler.passes import (
    attention_gradients,
    checks,
    expand,
    lower,
    scatters,
    simplify,
    split_products,
    split_sums,
)
from pywebgpu.ir.graph import Node
from pywebgpu.ir.show import as_text
from pywebgpu.ir.walk import toposort
from pywebgpu.kernels.access import is_free, is_view
from pywebgpu.kernels.templates import Selection, attention
from pywebgpu.ops import indexing, pointwise
from pywebgpu.settings import settings
from pywebgpu.support.formats import BF16, F16

Roots = tuple[Node, ...]
Rewrite = Callable[[Roots, Sequence[Node], Selection], Roots]


class Property(enum.Enum):
    """What may hold of all nodes of a graph. A pass establishes some; every later pass keeps them."""

    ONE_VALUE = "a node has one value: no composite op is left, and of fused ops those that a template matches"
    REAL = "complex values are leaves and roots only"
    HAS_KERNEL = "each op has a kernel, or is read through"
    OWN_BUFFER = "each root is computed into a buffer of its own"


@dataclass(slots=True)
class Graph:
    """A graph on its way through the passes.

    superseded: the orders of earlier forms. They are kept until the end, and then freed users before inputs: thousands
    of nodes that are freed one inside another overflow the stack of a browser.
    """

    roots: Roots
    order: list[Node] = field(init=False)
    superseded: list[list[Node]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = toposort(self.roots)

    def replace(self, roots: Roots) -> None:
        self.roots = roots
        self.order = toposort(roots)
        self.superseded.append(self.order)


def _always(order: Sequence[Node], selection: Selection) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass.

    purpose: a line for docs/architecture.md.  rewrite: the function; `module` is imported when it first applies, and
    has it under the pass's name, where few programs need it.  when: whether it can have something to do.
    """

    name: str
    purpose: str
    rewrite: Rewrite | None = None
    module: str = ""
    when: Callable[[Sequence[Node], Selection], bool] = _always
    establishes: tuple[Property, ...] = ()

    def run(self, roots: Roots, order: Sequence[Node], selection: Selection) -> Roots:
        rewrite: Rewrite = self.rewrite or getattr(import_module(f"pywebgpu.compiler.passes.{self.module}"), self.name)
        return rewrite(roots, order, selection)


def _is_complex(order: Sequence[Node], selection: Selection) -> bool:
    return any(node.spec.dtype.part is not None for node in order)


def _has_halves(order: Sequence[Node], selection: Selection) -> bool:
    return any(node.spec.dtype.format in (F16, BF16) for node in order)


def _has_scans(order: Sequence[Node], selection: Selection) -> bool:
    return any(node.op is indexing.scan for node in order)


def _has_matrices(order: Sequence[Node], selection: Selection) -> bool:
    return bool(selection.target.features.matrices)  # which no browser has


def _has_few_rows(order: Sequence[Node], selection: Selection) -> bool:
    return any(map(split_products.has_few_rows, order))


def own_buffers(roots: Roots, order: Sequence[Node], selection: Selection) -> Roots:
    """Copies roots that are views, leaves, constants or wanted twice, and those that not every kernel can write."""
    seen: set[int] = set()
    stored: list[Node] = []
    for root in roots:
        shared = root.buffer is not None or is_view(root) or is_free(root) or id(root) in seen
        shared = shared or packed_stores.needs_copy(root, selection)
        seen.add(id(root))
        stored.append(pointwise.copy(root) if shared else root)
    return tuple(stored)


def _has_few_queries(order: Sequence[Node], selection: Selection) -> bool:
    return any(map(attention.is_few, order))


_SIMPLIFY = Pass("simplify", "algebra, equal subgraphs once, constants folded", simplify.simplify)
DEVICE: tuple[Pass, ...] = (
    Pass("expand", "fused ops become a node for each value, or what they are made of", expand.expand,
         establishes=(Property.ONE_VALUE,)),
    Pass("split_complex", "complex values become pairs of real ones", module="split_complex", when=_is_complex,
         establishes=(Property.REAL,)),
    _SIMPLIFY,
    Pass("check_integers", "int64 arithmetic notes an overflow of 32 bits", checks.check_integers),
    Pass("lower", "ops without a kernel become ops that have one", lower.lower),
    _SIMPLIFY,
    Pass("split_attention", "attention of few rows over many keys becomes several, of a part of the keys each",
         module="split_attention", when=_has_few_queries),
    Pass("pack", "gradients of slices of one product are one value", attention_gradients.pack),
    Pass("lower_scatters", "rows combined by number: the algorithm that their sizes ask for", scatters.lower_scatters),
    Pass("split_scans", "scans along long rows become scans of blocks", module="split_scans", when=_has_scans),
    Pass("align_operands", "rows of halves at odd offsets are copied for subgroup matrices", module="align_operands",
         when=_has_matrices),
    Pass("sum_few_rows", "products of up to three rows become sums of products", module="few_rows", when=_has_few_rows),
    Pass("split_products", "products with few results and a long sum become several", split_products.split_products),
    Pass("split_sums", "sums down columns are begun by the kernel that walks the rows", split_sums.split_sums,
         establishes=(Property.HAS_KERNEL,)),
    Pass("cast_weights", "halves of a flat vector's ranges are cast by one kernel", module="cast_weights",
         when=_has_halves),
    Pass("own_buffers", "roots that are views, leaves or wanted twice are copied", own_buffers,
         establishes=(Property.OWN_BUFFER,)),
)  # fmt: skip
HOST: tuple[Pass, ...] = (
    Pass("expand_for_host", "fused ops become what they are made of, where NumPy is not faster",
         expand.expand_for_host),
    _SIMPLIFY,
    Pass("check_complex", "raises for ops that complex numbers do not have",
         module="split_complex", when=_is_complex),
)  # fmt: skip


def run(passes: Sequence[Pass], graph: Graph, selection: Selection) -> None:
    """Runs the passes that apply, one after another, on `graph`."""
    verifier: Any = (
        import_module("pywebgpu.compiler.verify").GraphVerifier(graph, selection) if settings.verify else None
    )
    for each in passes:
        if each.when(graph.order, selection):
            roots = each.run(graph.roots, graph.order, selection)
            if roots != graph.roots:
                graph.replace(roots)
        if settings.debug >= 4:
            print(f"--- after {each.name}\n{as_text(graph.roots)}")
        if verifier is not None:
            verifier.check(each)
