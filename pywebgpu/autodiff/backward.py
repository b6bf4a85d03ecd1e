"""The reverse walk: gradients of nodes as nodes.

A node remembers its op and inputs, so the graph itself is the backward graph. The walk goes along nodes with
`requires`, by a stack. Gradient formulas are ops like any other: they only add nodes, fuse like forward code, and can
be differentiated again.
"""

from collections.abc import Callable, Sequence, Set
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from pywebgpu.autodiff import composite_gradient, grad_mode
from pywebgpu.ir import composite, walk
from pywebgpu.ir.graph import (
    DATA,
    NO_ATTRS,
    Attrs,
    Composite,
    Custom,
    Fused,
    FusedNode,
    Generator,
    Leaf,
    Node,
    Output,
    Structural,
    Vjp,
    thread_state,
    used,
)
from pywebgpu.ops import movement, pointwise, reduction
from pywebgpu.support.shapes import Shape


class FunctionHooks(Protocol):
    """Hooks of the function that made a value."""

    reads: Sequence[Node]  # what it read: its hooks see their gradients

    def arrive(self, grads: Sequence[Node | None]) -> Sequence[Node | None]:
        """The gradients of its values, or what hooks made of them."""

    def leave(self, parts: Sequence[Node | None], grads: Sequence[Node | None]) -> Sequence[Node | None]:
        """The gradients of its inputs, or what hooks made of them."""


class GradAccumulator(Protocol):
    """What waits at a node for its gradient: hooks, a tensor that retains it, a leaf that accumulates it."""

    function: FunctionHooks | None

    def arrive(self, grad: Node, *, accumulate: bool, create_graph: bool) -> Node:
        """Sees the whole gradient of the node; returns it, or what hooks made of it."""


class Call(Protocol):
    """One application of a user-written function: attrs["call"] of its Custom nodes."""

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        """Gradients of the outputs -> gradients of the inputs 1.. of each Custom node."""

    def release(self) -> bool | None:
        """Drops what was saved for backward, which will not be asked again; True where nothing is ever saved."""


TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: {op} needs a "
    "{spec} whose tensor was written to afterwards. Hint: use an out-of-place operation, or .clone() before the write"
)


def gradients(
    roots: Sequence[Node],
    seeds: Sequence[Node],
    wanted: Sequence[Node] = (),
    *,
    accumulate: bool,
    create_graph: bool = False,
    retain_graph: bool = False,
    inside: bool = False,
) -> list[Node | None]:
    """d(roots)/d(w) for each w of `wanted`; leaves with an accumulator receive theirs when `accumulate`.

    inside: the walk ends at the nodes of `wanted`, whose hooks do not run: for a part of a larger walk.
    Raises RuntimeError when the graph was freed, or a value that a formula needs was overwritten.
    """
    grads: dict[Node, Node] = {}
    for root, seed in zip(roots, seeds, strict=True):
        _accumulate(grads, root, seed)
    asked = frozenset(wanted)
    order, ends = _history(roots, asked, inside=inside)
    results: dict[Node, Node] = {}
    several = _Several(order)
    with composite_gradient.walks.of(order), grad_mode.set_grad_enabled(create_graph):
        for node in reversed(order):
            grad = grads.pop(node, None)
            is_end = node in ends
            if grad is not None:
                if node.accumulator is not None and not (inside and is_end):
                    grad = node.accumulator.arrive(grad, accumulate=accumulate, create_graph=create_graph)
                if node in asked:
                    results[node] = grad
            if not is_end:
                _go_through(node, grad, grads, several)
    if not retain_graph:
        _free([node for node in order if node not in ends], everything=not inside and not asked, below=not inside)
    return [results.get(w) for w in wanted]


def _history(roots: Sequence[Node], wanted: Set[Node], *, inside: bool) -> tuple[list[Node], Set[Node]]:
    """The nodes of a walk, inputs before users, and those at which it ends."""
    ends: Set[Node] = wanted if inside else frozenset()
    order = walk.history(roots, ends)
    if used.observed and thread_state.observer is not None and any(map(_is_from_outside, order)):
        thread_state.observer.refuse("it goes backward through what was computed outside of it")
    return walk.towards(order, wanted) if wanted and not inside else (order, ends)


def _is_from_outside(node: Node) -> bool:
    """Whether a value with a history was there before the captured call, which computes nothing until it is over."""
    return node.buffer is not None and any(source.requires for source in node.inputs)


def _go_through(node: Node, grad: Node | None, grads: dict[Node, Node], several: "_Several") -> None:
    """From the gradient of a node, if one came to it, to those of its inputs."""
    try:
        if grad is not None and node.accumulator is not None and node.accumulator.function is not None:
            _hooked(node, grad, grads)
        elif type(node.op) in _SEVERAL:
            several.through(node, grad, grads)
        elif grad is not None and node.inputs:
            _through(node, grad, grads)
        elif grad is not None and node.freed:
            raise RuntimeError(TWICE)
    except Exception:
        if thread_state.origins is not None:
            thread_state.origins.failed(node)
        raise


def _free(walked: Sequence[Node], *, everything: bool, below: bool) -> None:
    """Frees what nodes saved. A node is spent with `everything`, or, where `below` is asked for, with all below it."""
    for node in walked:
        spent = everything or (below and all(source.spent for source in node.inputs if source.requires))
        if node.inputs and not node.freed:
            _let_go(node)
        node.spent = spent


def _hooked(node: Node, grad: Node, grads: dict[Node, Node]) -> None:
    """Through all that a function with hooks is made of, so that these see the gradients of what it read."""
    waiting, node.accumulator = node.accumulator, None  # It has seen the gradient.
    hooks: FunctionHooks = waiting.function
    try:
        if not hooks.reads:
            return
        (hooked,) = hooks.arrive((grad,))
        if hooked is None:
            return
        wanted = list({id(source): source for source in hooks.reads if source.requires}.values())
        partials = gradients(
            [node], [hooked], wanted, accumulate=False, create_graph=thread_state.grad, retain_graph=True, inside=True
        )
        of = dict(zip(map(id, wanted), partials, strict=True))
        parts = [of.pop(id(source), None) for source in hooks.reads]  # One that is there twice has all of it once.
        for source, part in zip(hooks.reads, hooks.leave(parts, (hooked,)), strict=True):
            if part is not None and source.requires:
                _accumulate(grads, source, part)
    finally:
        node.accumulator = waiting


def _through(node: Node, grad: Node, grads: dict[Node, Node]) -> None:
    inputs, attrs = node.inputs, node.attrs
    for input_index, rule, reads in _formulas(node):
        source = inputs[input_index]
        if not source.requires:
            continue
        is_written = False
        if reads:
            if node.freed:
                raise RuntimeError(TWICE)
            for index in reads:
                is_written = is_written or walk.is_stale(inputs[index] if index >= 0 else node)
        if is_written and (now := _values_now(node, reads)) is not None:
            part = rule(grad, now.get(node, node), *[now.get(source, source) for source in inputs], **attrs)
        elif is_written:
            part = _of_written(node, grad, input_index, reads)
        elif reads and node.spec.dtype.part is not None and type(node.op) is not Composite:  # Its own walk minded that.
            part = _holomorphic(rule, grad, node, inputs, attrs)
        else:
            part = rule(grad, node, *inputs, **attrs)
        if part is not None:
            if part.spec.shape != source.spec.shape:
                part = _fitted(part, source.spec.shape)
            if used.origins and thread_state.origins is not None:
                thread_state.origins.gradient(node, part, input_index)
            old = grads.get(source)
            grads[source] = part if old is None else composite_gradient.summed(old, part)


def _values_now(node: Node, reads: tuple[int, ...]) -> dict[Node, Node] | None:
    """What lies where the values that a formula reads lay, where all of it was written through `x.data`; else None."""
    values: dict[Node, Node] = {}
    for index in reads:
        value = node.inputs[index] if index >= 0 else node
        if walk.is_stale(value):
            now = walk.as_written(value)
            if now is None:
                return None
            values[value] = now
    return values


def _of_written(node: Node, grad: Node, input_index: int, reads: tuple[int, ...]) -> Node | None:
    """The gradient of an input of a node, where a value that the formula reads was written to.

    What a pending composite op is made of may read none of them, but what it made itself: that is still to be computed.
    """
    op = node.op
    if type(op) is not Composite or node.buffer is not None or not composite_gradient.repeats(op, _walked):
        _check_fresh(node, reads)
    assert isinstance(op, Composite)
    inputs = tuple([Node(movement.alias, (source,), NO_ATTRS, source.spec, source.requires) for source in node.inputs])
    expanded = composite.decomposed(op, inputs, {})
    wanted = [inputs[input_index]]  # A node of its own for each input, since two may be the same.
    (part,) = gradients(
        [expanded], [grad], wanted, accumulate=False, create_graph=thread_state.grad, retain_graph=True, inside=True
    )
    return part


def _holomorphic(rule: Vjp, grad: Node, node: Node, inputs: Sequence[Node], attrs: Attrs) -> Node | None:
    """The gradient of complex numbers: by the conjugate of the derivative that the rule multiplies with."""
    conj = import_module("pywebgpu.ops.complex_parts").conj
    return _conjugate(rule(conj(grad), node, *inputs, **attrs))


def _conjugate(part: Node | None) -> Node | None:
    if part is None or part.spec.dtype.part is None:
        return part
    conjugated: Node = import_module("pywebgpu.ops.complex_parts").conj(part)
    return conjugated


def _fitted(part: Node, shape: Shape) -> Node:
    """The gradient of an input that was broadcast: summed where it was of shape (), and without axes added in front."""
    if not shape:
        part = reduction.sum_(part, axes=tuple(range(len(part.spec.shape))))
    return movement.reshape(part, shape=shape)


def through_values(node: Node, grad: Node, grads: dict[Node, Node], value: Callable[[Node], Node]) -> None:
    """Goes through a node whose formulas read what `value` gives in place of its inputs and of itself."""
    inputs = [value(source) for source in node.inputs]
    for input_index, rule, reads in _formulas(node):
        source = node.inputs[input_index]
        if not source.requires:
            continue
        if reads and node.spec.dtype.part is not None and type(node.op) is not Composite:
            part = _holomorphic(rule, grad, value(node), inputs, node.attrs)
        else:
            part = rule(grad, value(node), *inputs, **node.attrs)
        if part is not None:
            fits = part.spec.shape == source.spec.shape
            _accumulate(grads, source, part if fits else _fitted(part, source.spec.shape))


def _accumulate(grads: dict[Node, Node], node: Node, part: Node) -> None:
    old = grads.get(node)
    grads[node] = part if old is None else composite_gradient.summed(old, part)


_SEVERAL = frozenset({Custom, Fused, Output})  # ops of several values, whose gradients are waited for


class _Several:
    """What arrived at ops of several values, until the gradients of all their values are there."""

    def __init__(self, order: Sequence[Node]) -> None:
        self._left: dict[int, int] = {}  # by id of a call: outputs that the walk still comes to
        self._calls: dict[int, list[Node | None]] = {}
        self._parts: dict[Node, list[Node | None]] = {}  # by node of several values, the gradients of each
        for node in order:
            if isinstance(node.op, Custom):
                key = id(node.attrs["call"])
                self._left[key] = self._left.get(key, 0) + 1

    def through(self, node: Node, grad: Node | None, grads: dict[Node, Node]) -> None:
        if isinstance(node.op, Custom):
            self._custom(node, grad, grads)
        elif node in self._parts:
            _fused(node, self._parts.pop(node), grads)
        elif grad is not None:
            self._output(node, grad)

    def _custom(self, node: Node, grad: Node | None, grads: dict[Node, Node]) -> None:
        """Waits for all outputs of one call, then asks it for the gradients of its inputs."""
        if not node.inputs:
            raise RuntimeError(TWICE)
        call, key = node.attrs["call"], id(node.attrs["call"])
        output_grads = self._calls.setdefault(key, [None] * node.attrs["outputs"])
        output_grads[node.attrs["index"]] = grad
        self._left[key] -= 1
        if self._left[key] or all(g is None for g in output_grads):
            return
        for input_index, (source, part) in enumerate(zip(node.inputs[1:], call.backward(output_grads), strict=True)):
            if part is not None and source.requires:
                if thread_state.origins is not None:
                    thread_state.origins.gradient(node, part, input_index)
                _accumulate(grads, source, part)

    def _output(self, node: Node, grad: Node) -> None:
        """Keeps the gradient of one value until all are there."""
        if not node.inputs:
            raise RuntimeError(TWICE)
        (fused,) = node.inputs
        assert isinstance(fused, FusedNode)
        output_grads = self._parts.setdefault(fused, [None] * len(fused.specs))
        index = node.attrs["index"]
        old = output_grads[index]
        output_grads[index] = grad if old is None else pointwise.add(old, grad)


def _fused(node: Node, parts: list[Node | None], grads: dict[Node, Node]) -> None:
    """By the op's own rule, or through what it is made of."""
    assert isinstance(node, FusedNode)
    reads = _read_by_fused(node)
    if reads and node.freed:
        raise RuntimeError(TWICE)
    _check_fresh(node, reads)
    input_grads = _through_fused(node, parts)
    for input_index, (source, part) in enumerate(zip(node.inputs, input_grads, strict=True)):
        if part is not None and source.requires:
            if part.spec.shape != source.spec.shape:
                part = _fitted(part, source.spec.shape)
            if thread_state.origins is not None:
                thread_state.origins.gradient(node, part, input_index)
            _accumulate(grads, source, part)


def _through_fused(node: FusedNode, parts: list[Node | None]) -> Sequence[Node | None]:
    op = node.op
    assert isinstance(op, Fused)
    if op.vjp is not None and all(part is None or index in op.ruled for index, part in enumerate(parts)):
        outputs = tuple([node.output(index) for index in range(len(node.specs))])
        is_complex = node.spec.dtype.part is not None
        coming = tuple([_conjugate(part) for part in parts]) if is_complex else tuple(parts)
        rule_grads = op.vjp(coming, outputs, *node.inputs, **node.attrs)
        if rule_grads is not None:
            return [_conjugate(part) for part in rule_grads] if is_complex else rule_grads
    # What the rule reads was kept, and is fresh; nobody had to keep the rest, which is computed again where it can be.
    unread = [
        source for index, source in enumerate(node.inputs) if op.vjp is not None and index not in _read_by_fused(node)
    ]
    if any(source.stale and not (source.inputs and source.buffer is None) for source in walk.toposort(unread)):
        raise RuntimeError(MODIFIED.format(op=op.name, spec="value"))
    with grad_mode.set_grad_enabled(True):
        values = op.fallback(*node.inputs, **node.attrs)
    reached = [(value, part) for value, part in zip(values, parts, strict=True) if part is not None and value.requires]
    wanted = list({id(source): source for source in node.inputs if source.requires}.values())
    input_grads = gradients(
        [value for value, _ in reached],
        [part for _, part in reached],
        wanted,
        accumulate=False,
        create_graph=thread_state.grad,
        retain_graph=True,  # What is below the inputs is not of this walk.
        inside=True,
    )
    of = dict(zip(map(id, wanted), input_grads, strict=True))
    return [of.pop(id(source), None) for source in node.inputs]  # One that is there twice has all of it once.


def _rules(node: Node) -> Sequence[Vjp | None]:
    """The gradient formula of each input."""
    op = node.op
    if isinstance(op, Leaf | Generator | Custom | Fused | Output | Composite):
        return ()
    if isinstance(op.vjp, tuple):
        return op.vjp
    if isinstance(op, Structural):  # One for all: it is told which input it is asked for.
        return [partial(op.vjp, input_index) for input_index in range(len(node.inputs))]
    return (op.vjp,)


# What a formula reads of its op's inputs and output: found once an op, by looking at the nodes that it makes.

Formula = tuple[int, Vjp, tuple[int, ...]]  # number of the input, its rule, numbers of the inputs read (-1: the output)
_known: dict[Any, tuple[Formula, ...]] = {}


def _formulas(node: Node) -> tuple[Formula, ...]:
    """The formulas of a node's op, for those inputs that have one."""
    op = node.op
    if type(op) is Composite:
        if op.formulas is None:
            op.formulas = composite_gradient.formulas(op, _walked)
        return op.formulas  # type: ignore[no-any-return]
    key: object = op if type(op) is not Structural else (op, len(node.inputs), node.attrs.get("mode"))
    formulas = _known.get(key)
    if formulas is None:
        rules = [(input_index, rule) for input_index, rule in enumerate(_rules(node)) if rule is not None]
        formulas = _known[key] = tuple([(input_index, rule, _read_by(rule, node)) for input_index, rule in rules])
    return formulas


def _walked(root: Node, grad: Node, wanted: Sequence[Node]) -> Sequence[Node | None]:
    return gradients([root], [grad], wanted, accumulate=False, create_graph=True, retain_graph=True)


def _read_by(rule: Vjp, node: Node) -> tuple[int, ...]:
    stand_ins = [Node(DATA, (), NO_ATTRS, source.spec) for source in (*node.inputs, node, node)]
    *inputs, out, seed = stand_ins
    with grad_mode.no_grad():
        gradient = rule(seed, out, *inputs, **node.attrs)
    return _reads([] if gradient is None else [gradient], inputs, [out])


_known_fused: dict[Any, tuple[int, ...]] = {}


def _read_by_fused(node: FusedNode) -> tuple[int, ...]:
    """What the rule of a fused op reads: numbers of inputs, and -1 - the number of an output. No rule: all inputs."""
    op, key = node.op, (node.op, len(node.inputs))
    assert isinstance(op, Fused)
    if op.vjp is None:
        return tuple(range(len(node.inputs)))
    if key not in _known_fused:
        inputs, outputs, seeds = (
            [Node(DATA, (), NO_ATTRS, spec) for spec in specs]
            for specs in ([source.spec for source in node.inputs], node.specs, node.specs)
        )
        output_grads = [seed if index in op.ruled else None for index, seed in enumerate(seeds)]
        with grad_mode.no_grad():
            input_grads = op.vjp(tuple(output_grads), tuple(outputs), *inputs, **node.attrs) or ()
        _known_fused[key] = _reads([part for part in input_grads if part is not None], inputs, outputs)
    return _known_fused[key]


def _value_read(node: Node, input_index: int) -> Node:
    """An input, or where the number is negative an output."""
    if input_index >= 0:
        return node.inputs[input_index]
    return node.output(-1 - input_index) if isinstance(node, FusedNode) else node


def _reads(grads: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Node]) -> tuple[int, ...]:
    """Numbers of the inputs, and -1 - the numbers of the outputs, that some nodes are made of."""
    names = {id(source): i for i, source in enumerate(inputs)} | {id(out): -1 - i for i, out in enumerate(outputs)}
    indices: set[int] = set()
    seen: set[int] = set()
    stack = list(grads)
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if id(current) in names:
            indices.add(names[id(current)])
        else:
            stack.extend(current.inputs)
    return tuple(sorted(indices))


def saved_nodes(roots: Sequence[Node]) -> list[Node]:
    """Every pending value that a later backward from `roots` would read."""
    values: dict[int, Node] = {}
    order = walk.unspent(roots)
    if composite_gradient.decompose(order, _walked):
        order = walk.unspent(roots)
    for node in order:
        if not node.freed and node.inputs:
            for value in saved_by(node):
                values[id(value)] = value
    # Constants are made again, and so are views of what has its buffer.
    return [n for n in values.values() if n.buffer is None and n.inputs and walk.base(n).buffer is None]


def saved_by(node: Node) -> Sequence[Node]:
    """The values that the gradient formulas of a node read."""
    if isinstance(node.op, Custom):
        return getattr(node.attrs["call"], "saved", ())
    if isinstance(node, FusedNode):
        return [_value_read(node, i) for i in _read_by_fused(node)]
    reads_of_inputs = [
        reads for input_index, _, reads in _formulas(node) if reads and node.inputs[input_index].requires
    ]
    return [node if i == -1 else node.inputs[i] for reads in reads_of_inputs for i in reads]


def _check_fresh(node: Node, reads: tuple[int, ...]) -> None:
    is_fused = isinstance(node, FusedNode)
    for i in reads:
        value = _value_read(node, i) if is_fused else node.inputs[i] if i >= 0 else node
        if walk.is_stale(value):
            raise RuntimeError(MODIFIED.format(op=node.op.name, spec=f"{value.spec.dtype} {list(value.spec.shape)}"))


def _let_go(node: Node) -> None:
    """Frees what a node saved that is not freed. One whose formulas read nothing keeps its inputs, as in torch."""
    keeps = node.attrs["call"].release() if type(node.op) is Custom else not _has_saved(node)
    if keeps:
        return
    node.freed = True
    if node.buffer is not None:
        node.inputs = ()


def _has_saved(node: Node) -> bool:
    if type(node.op) in _SEVERAL:
        return bool(_read_by_fused(node)) if isinstance(node, FusedNode) else any(map(_has_saved, node.inputs))
    for input_index, _, reads in _formulas(node):  # noqa: SIM110 - a generator would cost more than the loop
        if reads and node.inputs[input_index].requires:
            return True
    return False
