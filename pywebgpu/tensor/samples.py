"""Function transforms that run in a thread: what refuses inside of them, and what computes a batch where a function
sees a sample. Apart from func/, which runs them, because functions of users and factors of matrices ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from pywebgpu.autodiff import batching
from pywebgpu.ir.graph import DATA, NO_ATTRS, Node, Spec, thread_state
from pywebgpu.ops import movement
from pywebgpu.runtime import executor, state
from pywebgpu.tensor.base import TensorBase
from pywebgpu.utils import _pytree

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

Draws = Callable[[Node], bool]
_PACKAGE = __name__.partition(".")[0] + "."


class VmapInfo(NamedTuple):
    """What a rule for batches may ask: how many samples there are, and whether draws differ."""

    batch_size: int
    randomness: str


class Samples:
    """A vmap that runs: the nodes that stand for a sample, each with the node of all, which has the batch in front.

    draws: which random words differ by sample, as far as it is known now. given: stand-ins of arguments, each with the
    tensor of all samples and its batch axis.
    """

    def __init__(self, stand_ins: dict[Node, Node], info: VmapInfo, draws: Callable[[], Draws]) -> None:
        self.stand_ins, self.info, self._draws = stand_ins, info, draws
        self.given: dict[Node, tuple[Any, int]] = {}
        self._outside = state.default.local.queues

    def reaches(self, tensors: Sequence[object]) -> bool:
        """Whether any of these is made of a sample."""
        nodes = [tensor._node for tensor in tensors if isinstance(tensor, TensorBase)]
        return not executor.reached(nodes, frozenset(self.stand_ins)).isdisjoint(nodes)

    def whole(self, tensor: Any) -> tuple[Tensor, int | None]:
        """The tensor of all samples and its batch axis, which is None where they have it in common."""
        node = tensor._node
        if node in self.given:
            return self.given[node]
        ((batched, is_batched),) = batching.batched([node], self.stand_ins, self.info.batch_size, self._draws())
        if not is_batched:
            return tensor, None
        return tensor._new(movement.alias(batched), tensor._storage.device), 0

    def sample(self, tensor: Any, axis: int | None) -> Any:
        """What stands for a sample of a tensor of all."""
        if axis is None:
            return tensor
        node = tensor.movedim(axis, 0)._node
        stand_in = Node(DATA, (), NO_ATTRS, Spec(node.spec.shape[1:], node.spec.dtype), node.requires)
        self.stand_ins[stand_in] = node
        return tensor._new(stand_in, tensor._storage.device)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """A block that computes as if this vmap, and what runs inside of it, did not."""
        local, running = state.default.local, thread_state.transforms
        queues, thread_state.transforms = local.queues, running[: running.index(self)]
        local.queues = self._outside
        try:
            yield
        finally:
            local.queues, thread_state.transforms = queues, running

    def computed(self, function: Callable[..., Sequence[Tensor]], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The results of a function of tensors that computes batches of them as well, of a sample."""
        with self.outside():
            wholes = []
            for tensor in tensors:
                batch, axis = self.whole(tensor)
                moved: Any = batch.expand((self.info.batch_size, *batch.shape)) if axis is None else batch
                wholes.append(moved.movedim(axis, 0) if axis else moved)
            return tuple([self.sample(result, 0) for result in function(*wholes)])

    def by_rule(self, name: str, rule: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a rule for batches says of a sample: rule(info, in_dims, *args) gives results and their batch axes.

        Raises: RuntimeError for a rule that returns something else.
        """
        with self.outside():
            leaves, spec = _pytree.tree_flatten(args)
            pairs: list[Any] = [self.whole(leaf) if isinstance(leaf, TensorBase) else (leaf, None) for leaf in leaves]
            whole_args = spec.unflatten([value for value, _ in pairs])
            in_dims = spec.unflatten([axis for _, axis in pairs])
            returned = rule(self.info, in_dims, *whole_args, **kwargs)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise RuntimeError(
                    f"Expected the vmap rule of {name} to have two returns, got {type(returned)}: the output, and "
                    "out_dims, which say where its batch axes are"
                )
            output, out_dims = returned
            results, out_spec = _pytree.tree_flatten(output)
            axes = _pytree._broadcast_to_and_flatten(out_dims, out_spec)
            if axes is None or (isinstance(out_dims, tuple | list) and type(out_dims) is not type(output)):
                raise RuntimeError(
                    f"The vmap rule of {name} returned an incompatible (output, out_dims) tuple: out_dims {out_dims} "
                    f"does not have the structure of the output, which is {out_spec}"
                )
            return out_spec.unflatten([self.sample(result, axis) for result, axis in zip(results, axes, strict=True)])


@contextmanager
def running(transform: object) -> Iterator[None]:
    """A block inside of which a transform runs."""
    thread_state.transforms = [*thread_state.transforms, transform]
    try:
        yield
    finally:
        thread_state.transforms = thread_state.transforms[:-1]


def innermost(tensors: Sequence[object]) -> Samples | None:
    """The innermost vmap of whose samples one of these is made."""
    levels = [transform for transform in reversed(thread_state.transforms) if isinstance(transform, Samples)]
    return next((level for level in levels if level.reaches(tensors)), None)


def is_last(level: Samples) -> bool:
    """Whether no transform runs inside of this one."""
    return thread_state.transforms[-1] is level


def refuse_same(tensors: Sequence[object]) -> None:
    """Raises RuntimeError where draws that are the same for all samples would be made of different numbers."""
    level = innermost(tensors)
    if level is not None and level.info.randomness == "same":
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please use out-of-place "
            "operators with randomness='different', or a probability that all samples have in common."
        )


def refuse_unbatched(tensor: object) -> None:
    """Raises RuntimeError where different draws for each sample are written into what all have in common."""
    levels = [transform for transform in thread_state.transforms if isinstance(transform, Samples)]
    if levels and levels[-1].info.randomness == "different" and not levels[-1].reaches([tensor]):
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
            "randomness."
        )


def refuse_leaf() -> None:
    """Raises RuntimeError: inside of a transform no tensor may begin to require a gradient."""
    raise RuntimeError(
        "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside "
        "of a function that torch.func transforms. Please attempt to use the torch.func.* APIs instead, or call "
        "requires_grad_() outside of the function."
    )


def rule_of(function: Any, overridden: bool, sets_context: bool, args: Sequence[object]) -> Samples | None:
    """The vmap whose batch a class of users has to compute by its own rule, or None.

    Raises: RuntimeError for classes that cannot be transformed, as PyTorch does.
    """
    if function.__module__.startswith(_PACKAGE):
        return None
    if not sets_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
            "override the setup_context staticmethod. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    level = innermost(_pytree.tree_leaves(list(args)))
    if level is None:
        return None
    if overridden and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it has both generate_vmap_rule=True and an overriden "
            "vmap staticmethod. Please set generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid "
            "ambiguity."
        )
    if not overridden and not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {function.__name__}, but it does not have vmap support. Please override and "
            "implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    return level if overridden else None
