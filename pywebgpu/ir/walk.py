"""Orders and rebuilds of a graph. Pure: a walk returns new nodes and changes none. Never by recursion."""

from collections.abc import Callable, Iterable, Sequence, Set
from sys import getrefcount
from weakref import ref

from pywebgpu.dtypes import float32
from pywebgpu.ir.graph import DATA, HOST, NO_ATTRS, NO_VIEWS, Node, Spec, is_view, thread_state

Roots = tuple[Node, ...]


def toposort(roots: Iterable[Node]) -> list[Node]:
    """Inputs before users, each node once; a node that has its value is listed and not walked past."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = [*reversed(list(roots))]
    path: list[Node] = []
    while stack:
        node = stack.pop()
        if node is None:
            order.append(path.pop())
        elif node not in seen:
            seen.add(node)
            inputs = node.inputs
            if not inputs or node.buffer is not None:
                order.append(node)
            else:
                path.append(node)
                stack.append(None)
                for source in reversed(inputs):
                    if source in seen:
                        continue
                    stack.append(source)
    return order


def history(roots: Iterable[Node], stop: Set[Node] = frozenset()) -> list[Node]:
    """Like toposort, along nodes that a gradient may flow through, whether or not they have their value.

    Nodes in `stop` are listed and not walked past.
    """
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = [root for root in roots if root.requires]
    path: list[Node] = []
    while stack:
        node = stack.pop()
        if node is None:
            order.append(path.pop())
        elif node not in seen:
            seen.add(node)
            path.append(node)
            stack.append(None)
            if node not in stop:
                for source in reversed(node.inputs):
                    if source.requires and source not in seen:
                        stack.append(source)
    return order


def towards(order: Sequence[Node], wanted: Set[Node]) -> tuple[list[Node], Set[Node]]:
    """The part of a history that leads to some nodes, and those of them below which nothing does."""
    leading: list[Node] = []
    ends: set[Node] = set()
    seen: set[Node] = set()
    for node in order:
        if seen.isdisjoint(node.inputs):
            if node not in wanted:
                continue
            ends.add(node)
        seen.add(node)
        leading.append(node)
    return leading, ends


def unspent(roots: Iterable[Node]) -> list[Node]:
    """The nodes of a history that no walk back has let go, users before inputs or not: below one that was, all were."""
    seen: dict[Node, None] = {}
    stack = [root for root in roots if root.requires and not root.spent]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            for source in node.inputs:
                if source.requires and not source.spent:
                    stack.append(source)
    return list(seen)


def rebuild(roots: Roots, order: Sequence[Node], rule: Callable[[Node], Node]) -> Roots:
    """Applies `rule` once to each node of a graph that was toposorted; `rule` returns the node itself to keep it."""
    return replace(roots, order, lambda node, fresh: rule(fresh))


def replace(roots: Roots, order: Sequence[Node], rule: Callable[[Node, Node], Node]) -> Roots:
    """The same for rules that know nodes of the graph as it was: they get one, and the same over its new inputs."""
    new: dict[Node, Node] = {}
    origins = thread_state.origins
    for node in order:
        fresh = node
        if node.inputs and node.buffer is None:
            inputs = tuple([new[source] for source in node.inputs])
            if inputs != node.inputs:
                fresh = Node(node.op, inputs, node.attrs, node.spec)
            fresh = rule(node, fresh)
            if origins is not None:
                origins.carry(node, fresh)
        new[node] = fresh
    return tuple([new[root] for root in roots])


def base(node: Node) -> Node:
    """The node below a chain of views; a view that has its value is not looked through."""
    below: Node | None = node
    while below is not None:
        node, below = below, _below(below)
    return node


def is_stale(node: Node) -> bool:
    """Whether the value, or what it is a view of, was replaced by a write in place."""
    while not node.stale:
        if node.op.__class__ in NO_VIEWS:
            return False
        below = _below(node)
        if below is None:
            return False
        node = below
    return True


def as_written(node: Node) -> Node | None:
    """What a node's memory holds now, where it was written through `x.data` alone; else None."""
    views: list[Node] = []
    below = node
    while not hasattr(below, "shared"):
        inputs = below.inputs  # A view may have its own value since.
        if not inputs or not is_view(below.op):
            return None
        views.append(below)
        below = inputs[0]
    storage, counted = below.shared
    if storage.counted != counted:
        return None
    now: Node = storage.node
    for view in reversed(views):
        now = Node(view.op, (now,), view.attrs, view.spec)
    return now


def note_view(node: Node) -> None:
    """A view is about to have its own value: what is written to the value that it shows makes it stale from then on."""
    node.stale = is_stale(node)
    below = base(node)
    if below is not node:
        views = getattr(below, "views", None)
        if views is None:
            below.views = views = []
        views.append(ref(node, views.remove))


def overwrite(node: Node) -> None:
    """A value, and with it all that is a view of it, was replaced by a write in place."""
    node.stale = True
    views = [*getattr(node, "views", ())]
    while views:
        view = views.pop()()
        if view is not None:
            view.stale = True
            views += getattr(view, "views", ())


def _below(node: Node) -> Node | None:
    """What a view is of, unless it has its value. Another thread may give it that meanwhile, and end its inputs."""
    inputs = node.inputs
    if inputs and node.buffer is None and is_view(node.op):
        return inputs[0]
    return None


def let_go(held: list[Node]) -> None:
    """Ends the nodes of a list, and what nobody else holds below them, one after the other.

    Left to themselves they would end one inside another. CPython copes with that; in a browser the stack overflows
    after some two thousand.
    """
    while held:
        node = held.pop()
        if node.inputs and getrefcount(node) == _ALONE:
            held.extend(node.inputs)
            node.inputs = ()


def _alone() -> int:
    """What getrefcount says of a node that one local variable holds; interpreters count differently."""
    held = [Node(DATA, (), NO_ATTRS, Spec((), float32))]
    node = held.pop()
    return getrefcount(node)


_ALONE = _alone()


def leaves(order: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The data leaves and the host numbers of a toposorted graph: what a run must give."""
    data = [node for node in order if node.buffer is not None and node.op is not HOST]
    return data, [node for node in order if node.op is HOST]
