"""The graph's types: Spec, the kinds of Op, and Node.

They refer to one another, so they live in one file. Data only: no WGSL, no device. A node is immutable in what it
means; what changes is what is known of it: its value once computed (`buffer`), and then its history is let go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from pywebgpu.dtypes import DType, Kind
from pywebgpu.errors import DTypeError, ShapeError
from pywebgpu.ir.surface import RECORDS, Surface
from pywebgpu.step_capture.free_number import FreeNumber
from pywebgpu.support.shapes import Shape
from pywebgpu.support.symbolic import Sym

if TYPE_CHECKING:
    from pywebgpu.ir.observer import Observer
    from pywebgpu.ir.origin import Origins

Attrs = Mapping[str, Any]
NO_ATTRS: Attrs = {}
LARGE = 2**36  # elements, from which on a value's bytes are counted
_FLOAT = Kind.FLOAT  # Looked up once: a member of an enum is found by a call.
Vjp = Callable[..., "Node | None"]  # (grad, out, *inputs, **attrs) -> the gradient of one input


class Spec(NamedTuple):
    """What is known of a value before it is computed."""

    shape: Shape
    dtype: DType


@lru_cache(4096)
def spec_of(shape: Shape, dtype: DType) -> Spec:
    """One object for each, made in half the time, and told from others by identity.

    Sizes are Python's own integers: NumPy's are equal to them, and would be everybody's from then on.
    """
    if prod(shape) > LARGE:
        used.large = True
    return Spec(tuple([index(size) for size in shape]), dtype)


class ThreadState(threading.local):
    """The modes of a thread: whether new nodes remember that a gradient may flow, whether tensors never will.

    origins: who is told where nodes come from (see origin.py), mostly None.
    observer: who is notified of what the program does besides (see observer.py), mostly None.
    decomposing: what a Composite is made of is being recorded.
    wide: nodes of whole numbers that not every device can hold, and the numbers, until a tensor is made of them.
    autocast: for which devices amp/ casts what ops read, and how; empty where it does not.
    transforms: the function transforms of torch.func that run, innermost last.
    n_ordinary: how many blocks want compiled functions to run as ordinary code: what they do no replay does.
    Each thread has its own, and begins with these.
    """

    def __init__(self) -> None:
        self.grad, self.inference = True, False
        self.decomposing = False
        self.origins: Any = None
        self.observer: Observer | None = None
        self.wide: list[tuple[Node, int]] = []
        self.autocast: tuple[Any, ...] = ()
        self.n_ordinary = 0
        self.transforms: list[Any] = []

    def watch(self, origins: Origins | None) -> None:
        """Sets who is told in this thread; None ends it."""
        used.origins = True
        self.origins = origins

    @property
    def is_checked(self) -> bool:
        """Whether who watches has to see every op."""
        return self.origins is not None and self.origins.checks

    def span(self, kind: str, name: str) -> AbstractContextManager[None]:
        """Tells who watches, if somebody does, what runs inside the `with` block."""
        return _UNSEEN if self.origins is None else self.origins.span(kind, name)


class Used:
    """Whether any thread was ever watched, in inference mode, or had a number too wide, or a value that is too large
    for any device. To ask a thread takes longer.

    autocast: what calls a function of nodes with its operands cast, once autocast was imported.
    overrides: what asks classes and modes of a program's own, once there were any (see tensor/dispatch.py).
    observed: a step was captured.
    packing: what hands the values that a new one saves to hooks for saved tensors, once there were any.
    """

    __slots__ = ("autocast", "inference", "large", "observed", "origins", "overrides", "packing", "wide")

    def __init__(self) -> None:
        self.inference = self.large = self.observed = self.origins = self.wide = False
        self.autocast: Callable[..., Any] | None = None
        self.packing: Callable[..., Node] | None = None
        self.overrides: Callable[..., Any] | None = None


used = Used()
_UNSEEN = nullcontext()
thread_state = ThreadState()


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A value from outside: data with a buffer, or a host number which may change from run to run."""

    name: str


DATA = Leaf("data")
HOST = Leaf("host")


@dataclass(frozen=True, slots=True, eq=False)
class Pointwise:
    """Output element i depends on element i of each input.

    Inputs have one shape, but for those of shape (), which stand for that number everywhere. Else the graph never
    broadcasts. The gradient of an input of shape () is summed (see autodiff/backward.py): a formula need not know.
    """

    name: str
    wgsl: str | Callable[..., str]  # expression with {0}, {1}; or (dtypes of the inputs, **attrs) -> expression
    reference: str | Callable[..., Any]  # NumPy ufunc's name, or (np, *arrays, **attrs) -> array
    vjp: tuple[Vjp | None, ...]  # one an input; None where no gradient flows
    result: Callable[..., DType] | None = None  # (*dtypes, **attrs) -> dtype; None: the last input's
    domain: tuple[float, float] = (-3.0, 3.0)  # where tests draw their inputs
    edges: tuple[float, ...] = ()  # further inputs, for one-argument ops
    cost: int = 1  # rough number of arithmetic instructions
    surface: Surface | None = None  # where a function of PyTorch's is this op alone

    def __post_init__(self) -> None:
        if self.surface is not None and self.surface not in RECORDS.values():  # A copy with another rule is no new one.
            RECORDS[self] = self.surface

    def __call__(self, *inputs: Node, **attrs: Hashable) -> Node:
        spec = inputs[-1].spec
        requires = False
        for node in inputs:
            requires = requires or node.requires
            if node.spec is not spec and node.spec != spec:
                spec = self._spec(inputs)
        if self.result is not None:
            dtype = self.result(*[n.spec.dtype for n in inputs], **attrs)
            spec = spec if spec.dtype is dtype else spec_of(spec.shape, dtype)
        return Node(self, inputs, attrs or NO_ATTRS, spec, requires and _flows(self.vjp, inputs, spec.dtype))

    def _spec(self, inputs: tuple[Node, ...]) -> Spec:
        """The inputs' common shape, and their dtype."""
        spec = inputs[-1].spec
        for node in inputs:
            own = node.spec
            if own.shape != spec.shape:
                if own.shape and spec.shape:
                    raise ShapeError(f"{self.name}: inputs must have one shape, got {[n.spec.shape for n in inputs]}")
                spec = own if own.shape else spec
            if own.dtype is not spec.dtype and self.result is None:
                raise DTypeError(f"{self.name}: inputs must have one dtype, got {[n.spec.dtype for n in inputs]}")
        return spec


@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """A value computed from its position alone (and a few words of seed): constants, counters, random bits."""

    name: str
    reference: Callable[..., Any]  # (np, *arrays, spec=..., **attrs) -> array
    is_free: bool = True  # computed again wherever it is needed, and never stored

    def __call__(self, *inputs: Node, spec: Spec, **attrs: Hashable) -> Node:
        return Node(self, inputs, attrs, spec, False)


@dataclass(frozen=True, slots=True, eq=False)
class Movement:
    """Moves elements and computes none: a map from output coordinates to input coordinates, folded into loads."""

    name: str
    infer: Callable[..., Shape]  # (shape, **attrs) -> shape
    index: Callable[..., tuple[tuple[Sym, ...], tuple[Sym, ...]]]
    # ^ (coords, shape of the input, **attrs) -> coordinates of the input, expressions that must be in range (see pad)
    reference: Callable[..., Any]  # (np, array, **attrs) -> array or view
    vjp: Vjp
    is_barrier: bool = field(
        default=False, kw_only=True
    )  # its attribute is a token: it keeps equal values apart, and means nothing else

    def __call__(self, x: Node, **attrs: Hashable) -> Node:
        own = x.spec
        spec = spec_of(self.infer(own.shape, **attrs), own.dtype)
        return Node(self, (x,), attrs, spec, x.requires and thread_state.grad)


@dataclass(frozen=True, slots=True, eq=False)
class Reinterpretation(Movement):
    """A view of the same memory as another dtype.

    dtype: the new one, of the old.  strides: the new strides and offset, of the old.  back: the opposite.
    """

    dtype: Callable[[DType], DType]
    strides: Callable[[Shape, int], tuple[Shape, int]]
    back: Callable[[Node], Node]

    def __call__(self, x: Node, **attrs: Any) -> Node:
        spec = Spec(self.infer(x.spec.shape), self.dtype(x.spec.dtype))
        return Node(self, (x,), attrs, spec, x.requires and thread_state.grad)


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Folds axes to size 1; the rank stays. `combine` joins two partial values, `identity` starts one."""

    name: str
    combine: str  # WGSL expression of {0} and {1}, or the name of a rule in kernels/combine.py
    reference: Callable[..., Any]  # (np, array, axes) -> array with folded axes of size 1
    vjp: Vjp | None
    result: Callable[[DType], DType] | None = None

    def __call__(self, x: Node, axes: Shape) -> Node:
        shape = tuple([1 if axis in axes else n for axis, n in enumerate(x.spec.shape)])
        dtype = x.spec.dtype if self.result is None else self.result(x.spec.dtype)
        flows = self.vjp is not None and x.requires and thread_state.grad
        return Node(self, (x,), {"axes": axes}, spec_of(shape, dtype), flows)


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """Any other op: contraction, gather, scatter, scan, sort. `infer` gives the output's Spec."""

    name: str
    infer: Callable[..., Spec]  # (*specs, **attrs) -> Spec
    reference: Callable[..., Any]  # (np, *arrays, **attrs) -> array
    vjp: tuple[Vjp | None, ...] | Vjp  # a function (index, grad, out, *inputs) where the number of inputs varies
    is_view: bool = False  # it only changes where its first input is read, as a Movement does
    by_element: bool = False  # an element of it can be computed alone, as of a Pointwise op
    gathers: bool = False  # an element of it is read at another position of an input

    def __call__(self, *inputs: Node, **attrs: Hashable) -> Node:
        spec = self.infer(*[n.spec for n in inputs], **attrs)
        return Node(self, inputs, attrs or NO_ATTRS, spec, _flows(self.vjp, inputs, spec.dtype))


@dataclass(frozen=True, slots=True, eq=False)
class Custom:
    """A value whose gradient the user wrote: its first input, unchanged; the others are what the gradient goes to."""

    name: str

    def __call__(self, value: Node, *sources: Node, **attrs: Any) -> Node:
        flows = any(n.requires for n in sources) and value.spec.dtype.kind is _FLOAT and thread_state.grad
        return Node(self, (value, *sources), attrs, value.spec, flows)


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """Several values that one kernel may compute together, where a template matches the op on a target.

    fallback: (*inputs, **attrs) -> the same values, made of other ops: what it means, and what runs everywhere else.
    vjp: (gradients of the outputs, outputs, *inputs, **attrs) -> gradients of the inputs; a gradient may be None. It is
    asked where no gradient came to outputs other than those of `ruled`; else, or where it gives None, the gradient is
    the fallback's.
    host: (np, *arrays, **attrs) -> all values, for what device cpu computes faster so than op by op.
    hosted: the dtypes of which it does; None: all.
    """

    name: str
    infer: Callable[..., tuple[Spec, ...]]  # (*specs, **attrs) -> a Spec for each output
    fallback: Callable[..., tuple[Node, ...]]
    vjp: Callable[..., Sequence[Node | None] | None] | None = None
    ruled: tuple[int, ...] = (0,)
    host: Callable[..., Sequence[Any]] | None = None
    hosted: frozenset[DType] | None = None

    def __call__(self, *inputs: Node, **attrs: Hashable) -> tuple[Node, ...]:
        """The outputs."""
        specs = self.infer(*[n.spec for n in inputs], **attrs)
        flows = thread_state.grad and any(n.requires for n in inputs)
        fused = FusedNode(self, inputs, attrs or NO_ATTRS, specs, flows)
        return tuple([fused.output(position) for position in range(len(specs))])


class Composite:
    """A function of nodes as one op: the compiler puts what it is made of in its place (see ir/composite.py).

    So a loop without `compile` records one node a call, and one for the gradient of each input.

    name: the function's.  text: tells it from every other.  inputs, output: what it is made of, over stand-ins.
    formulas: the gradients of its inputs, and what they read (see autodiff/composite_gradient.py).
    flows: by input, whether a gradient can flow to it.  sequence: how it is made over others (see ir/composite.py).
    repeats: whether the gradients compute again what it computes; None until somebody asks.
    """

    __slots__ = ("flows", "formulas", "inputs", "name", "output", "repeats", "sequence", "spec", "text")

    def __init__(self, name: str, text: str, inputs: tuple[Node, ...], output: Node) -> None:
        self.name, self.text, self.inputs, self.output = name, text, inputs, output
        self.spec = output.spec
        reached = _reached(output)
        self.flows = tuple([node in reached for node in inputs])
        self.formulas: Any = None
        self.sequence: Any = None
        self.repeats: bool | None = None

    def __call__(self, *inputs: Node) -> Node:
        flows = False
        for position, node in enumerate(inputs):
            if node.requires and self.flows[position]:
                flows = thread_state.grad
                break
        return Node(self, inputs, NO_ATTRS, self.spec, flows)


def _reached(output: Node) -> set[Node]:
    """The nodes that a gradient of `output` can flow to."""
    reached: set[Node] = set()
    stack = [output] if output.requires else []
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            rules = getattr(node.op, "vjp", None)
            for position, source in enumerate(node.inputs):
                if source.requires and not (isinstance(rules, tuple) and rules[position] is None):
                    stack.append(source)
    return reached


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One value of a Fused op: its only input is that op's node, attrs["index"] says which."""

    name: str


OUTPUT = Output("output")
WHICH = (
    "output"  # the attribute that says which value, where each is a node of the Fused op (compiler/passes/expand.py)
)
Op = Leaf | Pointwise | Generator | Movement | Reduction | Structural | Custom | Fused | Output | Composite


def _flows(vjp: tuple[Vjp | None, ...] | Vjp, inputs: tuple[Node, ...], dtype: DType) -> bool:
    for position, node in enumerate(inputs):
        if node.requires and dtype.kind is _FLOAT and (not isinstance(vjp, tuple) or vjp[position] is not None):
            return thread_state.grad
    return False


class Node:
    """One value of the graph; compared by identity.

    buffer: the computed value: a device buffer, or the number of a HOST leaf. None while pending.
    requires: a gradient may flow through it.  freed: backward went through it and let its history go.
    spent: backward went through all of its history.
    stale: an in-place write replaced it in its tensor after it was read.
    views: weak references to views of it that have their own values, which such a write makes stale, too; else not set.
    shared: the storage that it was the value of until it was written through `x.data`, which no gradient minds, and how
    many other writes that had seen; else not set.
    storage: a weak reference to the tensor storage whose value it became; not set before.
    accumulator: what wants to see the gradient that arrives here (a leaf tensor, hooks); see autograd.
    function: the name of the function that it is the result of, where a gradient may ask; else not set.
    """

    __slots__ = (
        "__weakref__", "accumulator", "attrs", "buffer", "freed", "function", "inputs", "op", "requires", "shared",
        "spec", "spent", "stale", "storage", "views",
    )  # fmt: skip

    def __init__(self, op: Op, inputs: tuple[Node, ...], attrs: Attrs, spec: Spec, requires: bool = False) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.spec = spec
        self.requires = requires
        self.buffer: Any = None
        self.freed = self.spent = self.stale = False
        self.accumulator: Any = None

    storage: Any
    shared: tuple[Any, int]
    views: list[ref[Node]]
    function: str

    def called(self, function: str) -> Node:
        """Notes the function that it is the result of; of torch.ops.aten where it begins so."""
        if self.requires:
            self.function = function
        return self

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.spec.dtype.name}{list(self.spec.shape)}>"

    @property
    def is_source(self) -> bool:
        """True where a walk stops: the value is there, or comes from outside."""
        return self.buffer is not None or not self.inputs


class RowsNode(Node):
    """A gradient that is zero but in some rows: it is known by them as well.

    parts: numbers of rows, where one may come several times; what is added there; the number that counts as none.
    """

    __slots__ = ("parts",)

    def __init__(self, dense: Node, parts: tuple[tuple[Node, Node, int | None], ...]) -> None:
        super().__init__(dense.op, dense.inputs, dense.attrs, dense.spec, dense.requires)
        self.parts = parts


class FusedNode(Node):
    """All values of a Fused op; read as a value itself, it is the first one.

    It knows what became of its outputs, though they hold it and not it them: a gradient formula may read one whose node
    is gone.
    """

    __slots__ = ("cells", "specs")

    def __init__(
        self, op: Fused, inputs: tuple[Node, ...], attrs: Attrs, specs: Sequence[Spec], requires: bool
    ) -> None:
        super().__init__(op, inputs, attrs, specs[0], requires)
        self.specs = specs
        self.cells = [Cell() for _ in specs]

    def output(self, index: int) -> OutputNode:
        """The node of an output, or one that stands for it if that is gone."""
        cell = self.cells[index]
        node = None if cell.node is None else cell.node()
        if node is None:
            node = OutputNode(self, index, cell)
            cell.node = ref(node)
        return node


class Cell:
    """What is known of an output, whichever nodes stand for it: see Node."""

    __slots__ = ("buffer", "node", "stale")

    def __init__(self) -> None:
        self.buffer: Any = None
        self.stale = False
        self.node: ref[OutputNode] | None = None


class OutputNode(Node):
    """An output of a FusedNode."""

    __slots__ = ("_cell",)

    def __init__(self, fused: FusedNode, index: int, cell: Cell) -> None:
        self._cell = cell
        spec, was = fused.specs[index], (cell.buffer, cell.stale)
        super().__init__(OUTPUT, (fused,), {"index": index}, spec, fused.requires and spec.dtype.kind is _FLOAT)
        cell.buffer, cell.stale = was

    @property
    def buffer(self) -> Any:
        return self._cell.buffer

    @buffer.setter
    def buffer(self, buffer: object) -> None:
        self._cell.buffer = buffer

    @property
    def stale(self) -> bool:
        return self._cell.stale

    @stale.setter
    def stale(self, stale: bool) -> None:
        self._cell.stale = stale


NO_VIEWS = frozenset({Composite, Pointwise, Reduction, Leaf})  # kinds of ops of which none is a view


def is_view(op: Op) -> bool:
    """Whether an op changes where its first input is read, and computes nothing."""
    return op.__class__ is Movement or isinstance(op, Movement) or (isinstance(op, Structural) and op.is_view)


def data(spec: Spec, buffer: object) -> Node:
    """A leaf whose value is in a device's buffer."""
    node = Node(DATA, (), NO_ATTRS, spec)
    node.buffer = buffer
    return node


def host(value: float | int | bool | FreeNumber, dtype: DType) -> Node:
    """A number of the host, shape (). It may change from run to run: a Program never holds it."""
    node = Node(HOST, (), NO_ATTRS, spec_of((), dtype))
    node.buffer = value
    return node
