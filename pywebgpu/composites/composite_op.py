"""Functions of nodes that are recorded as one node: what they are made of is looked at once, then by the compiler."""

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from math import copysign
from typing import Any, ParamSpec

from pywebgpu.dtypes import Kind
from pywebgpu.ir import walk
from pywebgpu.ir.graph import DATA, NO_ATTRS, Composite, Custom, Leaf, Movement, Node, Spec, thread_state, used

P = ParamSpec("P")
KNOWN = 512  # composite ops that are kept, the least recently used go first


def composite(function: Callable[P, Node]) -> Callable[P, Node]:
    """Decorates a function of nodes, and of what else never changes: its calls become nodes of a Composite.

    Its result has to follow from the specs of its nodes and the rest of its arguments alone. It is called as it is
    where somebody checks each op, and where it needs numbers of the host or draws.
    """
    name = function.__name__

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> Node:
        if thread_state.decomposing or (used.origins and thread_state.is_checked):
            return function(*args, **options)
        nodes: list[Node] = []
        flows = False
        arguments: list[object] = []
        values: Sequence[Any] = (*args, *options.values()) if options else args
        for value in values:
            kind = type(value)
            if kind is Node or isinstance(value, Node):
                nodes.append(value)
                arguments.append(value.spec)
                flows = flows or value.requires
            elif kind in _CONSTANT or (kind is float and _is_known(value)) or _is_shape(value):
                arguments.append(value)
            else:
                return function(*args, **options)
        op = _made(function, name, tuple(options), flows and thread_state.grad, *arguments)
        return function(*args, **options) if op is None else op(*nodes)

    return call


_SIZES = frozenset((int, type(None)))
_CONSTANT = frozenset((type(None), int, bool, str))


def _is_known(value: float) -> bool:
    """Whether a float is equal to itself alone: -0.0 is not."""
    return value == value and (value != 0 or copysign(1, value) > 0)


def _is_shape(value: object) -> bool:
    return type(value) is tuple and _SIZES.issuperset(map(type, value))


@lru_cache(maxsize=KNOWN, typed=True)  # 1, 1.0 and True are not the same.
def _made(
    function: Callable[..., Node], name: str, names: tuple[str, ...], flows: bool, *arguments: object
) -> Composite | None:
    """The op of a function for arguments, where a Spec stands for a node. None where it has to be recorded as it is.

    flows: a gradient may be asked for.
    """
    inputs = tuple([_stand_in(value, flows=flows) for value in arguments if isinstance(value, Spec)])
    left = iter(inputs)
    values = [next(left) if isinstance(value, Spec) else value for value in arguments]
    count, wide = len(values) - len(names), len(thread_state.wide)
    before = thread_state.grad, thread_state.decomposing
    thread_state.grad, thread_state.decomposing = flows, True
    try:
        output = function(*values[:count], **dict(zip(names, values[count:], strict=True)))
        is_wide = len(thread_state.wide) > wide
    finally:
        thread_state.grad, thread_state.decomposing = before
        del thread_state.wide[wide:]
    order = walk.toposort([output])
    if is_wide or not all(_follows(node) or node in inputs for node in order):
        return None
    return Composite(name, f"{name}({', '.join(map(repr, arguments))}; {names}, {flows})", inputs, output)


def _stand_in(spec: Spec, *, flows: bool) -> Node:
    return Node(DATA, (), NO_ATTRS, spec, flows and spec.dtype.kind is Kind.FLOAT)


def _follows(node: Node) -> bool:
    """Whether a node's value follows from its inputs, each time: it is no number of the host and no draw."""
    op = node.op
    return not isinstance(op, Leaf | Custom) and not (isinstance(op, Movement) and op.is_barrier)
