"""Computing a part of the forward pass again during backward, instead of keeping its intermediate values."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pywebgpu import devices
from pywebgpu.autodiff import backward as reverse
from pywebgpu.autodiff import grad_mode
from pywebgpu.dtypes import Kind
from pywebgpu.ir import walk
from pywebgpu.ir.graph import Custom, Node, thread_state
from pywebgpu.ops import movement
from pywebgpu.support import lazy as _lazy
from pywebgpu.tensor import generator
from pywebgpu.tensor.base import TensorBase
from pywebgpu.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pywebgpu.nn.module import Module
    from pywebgpu.tensor.generator import State

Contexts = tuple[AbstractContextManager[object], AbstractContextManager[object]]
segment: Custom = Custom("CheckpointFunctionBackward")
IMPLICIT = (
    "torch.utils.{} use_reentrant parameter should be passed explicitly. PyTorch will raise an exception where it is "
    "not; here both values compute the same."
)
_tokens = itertools.count()  # One a recomputation: it is never merged with the first computation.


class CheckpointError(RuntimeError):
    """What a program catches where PyTorch finds that the second computation differs from the first."""


class DefaultDeviceType:
    """Kept and given back: draws have one state for all devices."""

    _found: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._found = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._found or devices.named(devices.default_device()).type


def noop_context_fn() -> Contexts:
    """Two contexts that change nothing: checkpoint's own."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    **kwargs: Any,
) -> Any:
    """function(*args), whose intermediate values are not kept: backward computes them again, with the same draws.

    Gradients flow to the tensors among `args` and `kwargs`, and to all tensors that the function uses by itself.
    context_fn: gives two contexts, one around the call and one around the second computation.
    """
    if use_reentrant is None:
        warnings.warn(IMPLICIT.format("checkpoint: the"), stacklevel=2)
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    forward, again = context_fn()
    with forward:
        if not thread_state.grad:
            return function(*args, **kwargs)
        state = generator.default().state if preserve_rng_state else None
        return _Segment(function, args, kwargs, state, again).outputs()


def checkpoint_sequential(
    functions: Iterable[Callable[..., Any]] | Module,
    segments: int,
    input: object,
    use_reentrant: bool | None = None,
    **options: Any,
) -> object:
    """A chain of modules in `segments` parts, all but the last of them checkpointed."""
    if use_reentrant is None:
        warnings.warn(IMPLICIT.format("checkpoint.checkpoint_sequential: the"), stacklevel=2)
    steps = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(steps) // segments
    starts = [size * index for index in range(segments)]
    for start, end in zip(starts, [*starts[1:], len(steps)], strict=True):
        part = _chain(steps[start:end])
        input = part(input) if end == len(steps) else checkpoint(part, input, use_reentrant=False, **options)
    return input


def _chain(steps: list[Any]) -> Callable[[Any], Any]:
    def run(x: object) -> object:
        for step in steps:
            x = step(x)
        return x

    return run


class _Segment:
    """One checkpointed call: what it needs to run again, and the gradients that come of it."""

    def __init__(
        self,
        function: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        state: State | None,
        around: AbstractContextManager[object],
    ) -> None:
        self.function, self.state, self.around = function, state, around
        self.names = tuple(kwargs)
        self.given = [*args, *kwargs.values()]
        self.nodes = [arg._node if isinstance(arg, TensorBase) else None for arg in self.given]
        self.devices = [arg._storage.device if isinstance(arg, TensorBase) else None for arg in self.given]
        self.given = [None if isinstance(arg, TensorBase) else arg for arg in self.given]
        self.leaves: list[Node] = []
        self.released = False
        self.autocast = thread_state.autocast  # Backward runs outside of it.

    def outputs(self) -> object:
        """Runs the function; its tensors remember this call and nothing of what happened inside."""
        result, copies = self._run(detached=True)
        tensors: list[Any] = []
        _gather(result, tensors)
        roots = [tensor._node for tensor in tensors]
        entered = frozenset(copies)
        ends = [node for node in walk.history(roots) if not any(n.requires for n in node.inputs)]
        self.leaves = [node for node in ends if node not in entered]
        sources = [*(node for node in self.nodes if node is not None and node.requires), *self.leaves]
        replacements = {}
        for index, (tensor, root) in enumerate(zip(tensors, roots, strict=True)):
            with grad_mode.no_grad():
                value = movement.alias(root)
            if root.requires:
                value = segment(value, *sources, call=self, index=index, outputs=len(tensors))
            replacements[id(tensor)] = Tensor._new(value, tensor._storage.device)
        return _replaced(result, replacements)

    def backward(self, grads: list[Node | None]) -> Sequence[Node | None]:
        if self.released:
            raise RuntimeError(reverse.TWICE)
        create_graph = thread_state.grad
        with grad_mode.enable_grad(), _replayed(self.state), self.around:
            result, copies = self._run(detached=not create_graph)
        tensors: list[Any] = []
        _gather(result, tensors)
        pairs = [(tensor._node, grad) for tensor, grad in zip(tensors, grads, strict=True) if grad is not None]
        roots = [root for root, _ in pairs if root.requires]
        seeds = [grad for root, grad in pairs if root.requires]
        again = {_identity(node): node for node in walk.history(roots, frozenset(copies))}
        wanted = [*copies, *(again.get(_identity(leaf), leaf) for leaf in self.leaves)]
        return reverse.gradients(
            roots, seeds, wanted, accumulate=False, create_graph=create_graph, retain_graph=True, inside=True
        )

    @property
    def saved(self) -> list[Node]:
        return [node for node in self.nodes if node is not None]

    def release(self) -> None:
        self.nodes, self.given, self.released = [], [], True

    def _run(self, *, detached: bool) -> tuple[Any, list[Node]]:
        """Calls the function with copies of its tensors that nothing merges with; also those that want a gradient."""
        token = next(_tokens)
        values, copies = [], []
        for value, node, device in zip(self.given, self.nodes, self.devices, strict=True):
            if node is None or device is None:
                values.append(value)
                continue
            with grad_mode.set_grad_enabled(thread_state.grad and not detached):
                copy = movement.barrier(node, token=token)
            if node.requires and node.spec.dtype.kind is Kind.FLOAT:
                copy.requires = True
                copies.append(copy)
            values.append(Tensor._new(copy, device))
        split = len(values) - len(self.names)
        kwargs = dict(zip(self.names, values[split:], strict=True))
        outside, thread_state.autocast = thread_state.autocast, self.autocast
        try:
            return self.function(*values[:split], **kwargs), copies
        finally:
            thread_state.autocast = outside


def _identity(node: Node) -> int:
    """A leaf tensor's node changes when the tensor is written; what waits for its gradient stays."""
    return id(node) if node.accumulator is None else id(node.accumulator)


@contextmanager
def _replayed(state: State | None) -> Iterator[None]:
    """The random state of the first run inside, today's again afterwards."""
    if state is None:
        yield
        return
    draws = generator.default()
    today = draws.state
    draws.restore(state)
    try:
        yield
    finally:
        draws.restore(today)


def _gather(value: object, tensors: list[Any]) -> None:
    """The tensors of a nest, in order."""
    if isinstance(value, TensorBase):
        tensors.append(value)
    elif isinstance(value, tuple | list):
        for item in value:
            _gather(item, tensors)
    elif isinstance(value, dict):
        for item in value.values():
            _gather(item, tensors)


def _replaced(value: object, replacements: dict[int, Any]) -> object:
    """The nest with other tensors."""
    if isinstance(value, TensorBase):
        return replacements[id(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_replaced(item, replacements) for item in value))  # type: ignore[arg-type]
    if isinstance(value, tuple | list):
        return type(value)(_replaced(item, replacements) for item in value)
    if isinstance(value, dict):
        return {key: _replaced(item, replacements) for key, item in value.items()}
    return value


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple without their history, as leaves that want a gradient where those did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach()._require_grad(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[object]) -> None:
    """Warns where no tensor among them wants a gradient."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A `with` block that changes nothing: what no gradient needs is never computed again."""
    yield


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A `with` block that changes nothing: torch.explain shows what is computed."""
    yield


__getattr__ = _lazy.absent(__name__)
