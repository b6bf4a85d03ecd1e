"""vmap: a function of one sample, called with a batch.

The function is called once, with stand-ins for a sample; the graph that it records is made over the batch. Where it
reads a value on the host, or an op has no rule, it is called for each sample instead.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pywebgpu.autodiff import batching
from pywebgpu.func import tree
from pywebgpu.ir import walk
from pywebgpu.ir.graph import DATA, NO_ATTRS, Node, Spec, thread_state
from pywebgpu.ops import movement, reduction
from pywebgpu.runtime import executor, state
from pywebgpu.tensor import functions, generator, samples
from pywebgpu.tensor.base import TensorBase

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

Call = Callable[..., Any]
Part = tuple[list[Any], tree.Rebuild, list[bool]]  # leaves, their containers, which of them all samples have in common


class Fallback:
    """Whether vmap may call a function for each sample, and whether it says so."""

    def __init__(self) -> None:
        self.allowed, self.warns = True, False


fallback = Fallback()
RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)

WRITTEN = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic"
)


def vmap(
    func: Call,
    in_dims: object = 0,
    out_dims: object = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Call:
    """The function over an axis of its arguments, which it does not see. See torch.func.vmap.

    in_dims: the axis of each argument, None where all samples have it in common; out_dims: where it goes.
    randomness: whether draws are an "error", the "same" for all samples, or "different".
    chunk_size: how many samples are computed at once.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def over_batch(*args: Any, **kwargs: Any) -> object:
        leaves, rebuild = tree.flatten((args, kwargs))
        axes = _axes(in_dims, args, kwargs)
        moved: list[Any] = [_front(leaf, axis) for leaf, axis in zip(leaves, axes, strict=True)]
        size = _size(moved, axes)
        step = size if chunk_size is None else chunk_size
        parts, begun = [], generator.default().state
        for start in range(0, max(size, 1), max(step, 1)):
            some = [
                leaf if axis is None else leaf[start : start + step] for leaf, axis in zip(moved, axes, strict=True)
            ]
            count = min(step, size - start)
            if size <= step:
                some = moved
            elif start and randomness == "same":
                generator.default().restore(begun)
            parts.append(_batch(func, some, axes, rebuild, count, randomness))
        return _joined(parts, out_dims)

    return over_batch


def chunk_vmap(
    func: Call, in_dims: object = 0, out_dims: object = 0, randomness: str = "error", chunks: int = 2
) -> Call:
    """vmap in a number of parts. See functorch.experimental.chunk_vmap."""

    @functools.wraps(func)
    def over_batch(*args: Any, **kwargs: Any) -> object:
        axes = _axes(in_dims, args, kwargs)
        leaves = [_front(leaf, axis) for leaf, axis in zip(tree.flatten((args, kwargs))[0], axes, strict=True)]
        size = -(-_size(leaves, axes) // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(size, 1))(*args, **kwargs)

    return over_batch


def _axes(in_dims: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The mapped axis of each leaf of the arguments, or None; no keyword argument is mapped."""
    if not isinstance(in_dims, int | tuple | dict | None):
        raise ValueError(
            f"vmap: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args and not kwargs:
        raise ValueError("vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over nothing")
    try:
        flat_axes = tree.spread(in_dims, args)
    except (ValueError, KeyError):
        raise ValueError(
            f"vmap: in_dims is not compatible with the structure of inputs. in_dims is {in_dims}, and there are "
            f"{len(args)} inputs"
        ) from None
    return flat_axes + [None] * len(tree.flatten(kwargs)[0])


def _front(leaf: object, axis: int | None) -> object:
    """An argument with the mapped axis in front."""
    if axis is None:
        return leaf
    if not isinstance(axis, int):
        raise ValueError(f"vmap: Got in_dim={axis} for an input; expected it to be an int or None")
    if not isinstance(leaf, TensorBase):
        raise ValueError(
            f"vmap: Got in_dim={axis} for an input but the input is of type {type(leaf)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -leaf.ndim <= axis < leaf.ndim:
        raise ValueError(
            f"vmap: Got in_dim={axis} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so "
            f"expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
        )
    tensor: Any = leaf
    moved: object = tensor.movedim(axis, 0) if axis else tensor
    return moved


def _size(leaves: list[Any], axes: list[Any]) -> int:
    sizes = [leaf.shape[0] for leaf, axis in zip(leaves, axes, strict=True) if axis is not None]
    if not sizes:
        raise ValueError("vmap: at least one of the inputs must be mapped: in_dims are None for all of them")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return int(sizes[0])


def _batch(func: Call, leaves: list[Any], axes: list[Any], rebuild: tree.Rebuild, size: int, randomness: str) -> Part:
    """The leaves of the result, each with the batch in front."""
    try:
        return _recorded(func, leaves, axes, rebuild, size, randomness)
    except (batching.NoBatchError, executor.StandInError) as error:
        if not size or not fallback.allowed:
            raise
        if fallback.warns:
            warnings.warn(
                f"There is a performance drop because vmap calls the function for each sample: {error}", stacklevel=4
            )
    begun, results, back = generator.default().state, [], None
    for index in range(size):
        if randomness == "same":
            generator.default().restore(begun)
        sample: Any = rebuild([leaf if axis is None else leaf[index] for leaf, axis in zip(leaves, axes, strict=True)])
        outputs, back = tree.flatten(func(*sample[0], **sample[1]))
        results.append([_tensor(leaf) for leaf in outputs])
    assert back is not None
    stacked = [functions.stack(column) for column in zip(*results, strict=True)]
    return stacked, back, [False] * len(stacked)


def _recorded(
    func: Call, leaves: list[Any], axes: list[Any], rebuild: tree.Rebuild, size: int, randomness: str
) -> Part:
    """The same by one call: what it records for a sample is made for all."""
    mapped = [index for index, axis in enumerate(axes) if axis is not None]
    stand_ins = {_stand_in(leaves[index]): leaves[index]._node for index in mapped}
    drawn: list[tuple[Any, Any]] = []
    shared = [leaf for leaf, axis in zip(leaves, axes, strict=True) if axis is None and isinstance(leaf, TensorBase)]
    before = [(leaf._storage, leaf._storage.version, leaf._storage.node) for leaf in shared]
    info = samples.VmapInfo(size, randomness)
    level = samples.Samples(stand_ins, info, lambda: _draws(drawn) if randomness == "different" else _never)
    for index, node in zip(mapped, list(stand_ins), strict=True):
        axis = axes[index] % leaves[index].ndim
        level.given[node] = (leaves[index].movedim(0, axis) if axis else leaves[index], axis)
    with recording(stand_ins), _noting(drawn), samples.running(level):
        sample = {
            index: leaves[index]._new(node, leaves[index]._storage.device)
            for index, node in zip(mapped, list(stand_ins), strict=True)
        }
        arguments: Any = rebuild([sample.get(index, leaf) for index, leaf in enumerate(leaves)])
        outputs, back = tree.flatten(func(*arguments[0], **arguments[1]))
        results = [_tensor(leaf) for leaf in outputs]
        written = [index for index in mapped if sample[index]._storage.version]
        roots = [result._node for result in results] + [sample[index]._node for index in written]
        _check_shared(before, frozenset(stand_ins))
    differs = _draws(drawn)
    if randomness == "error" and any(map(differs, walk.toposort(roots))):
        raise RuntimeError(RANDOM)
    batched = batching.batched(roots, stand_ins, size, differs if randomness == "different" else _never)
    for index, pair in zip(written, batched[len(results) :], strict=True):
        leaves[index]._assign(_full(*pair, size))
    shown = {id(sample[index]._storage): (sample[index], leaves[index]) for index in mapped}
    views = [_view(result, *shown.get(id(result._storage), (None, None)), size) for result in results]
    leaves = [
        _made(result, *pair, size) if view is None else view
        for view, result, pair in zip(views, results, batched, strict=False)
    ]
    return leaves, back, [not is_batched for _, is_batched in batched[: len(results)]]


def _view(result: Tensor, sample: Any, leaf: Any, size: int) -> Tensor | None:
    """The view of an argument of which the function gave back the part of a sample; None for another result."""
    if sample is None or result._node.requires is not sample._node.requires:
        return None
    if any(op is movement.reshape for op, _ in result._path) and not leaf.is_contiguous():
        return None
    path = batching.views(result._path, sample._storage.node.spec.shape, size)
    return leaf._views(path) if path else leaf if path is not None else None


def _check_shared(before: list[tuple[Any, int, Node]], stand_ins: frozenset[Node]) -> None:
    """Raises RuntimeError where a tensor that all samples have in common was given a value of each sample."""
    for storage, version, node in before:
        if storage.version != version and storage.node in executor.reached([storage.node], stand_ins):
            storage.replace(node)
            raise RuntimeError(WRITTEN)


def _stand_in(leaf: Tensor) -> Node:
    node: Node = leaf._node
    return Node(DATA, (), NO_ATTRS, Spec(node.spec.shape[1:], node.spec.dtype), node.requires)


@contextmanager
def _noting(drawn: list[tuple[Any, Any]]) -> Iterator[None]:
    """A block whose random draws are noted."""
    generator.watching.append(drawn)
    try:
        yield
    finally:
        generator.watching[:] = [other for other in generator.watching if other is not drawn]


def _draws(drawn: list[tuple[Any, Any]]) -> Callable[[Node], bool]:
    """Which random words are of these draws."""
    if not drawn:
        return _never
    if any(type(number) is not int for _, number in drawn):
        raise batching.NoBatchError("vmap: the step is captured")
    return functools.partial(batching.is_draw, drawn=frozenset((words[0], number) for words, number in drawn))


def _never(node: Node) -> bool:
    return False


def _tensor(leaf: object) -> Tensor:
    if not isinstance(leaf, TensorBase):
        raise ValueError(f"vmap: the function must only return Tensors, got type {type(leaf)} as a return")
    return leaf  # type: ignore[return-value]  # There is one class of tensors.


def _made(result: Tensor, node: Node, is_batched: bool, size: int) -> Tensor:
    return result._new(movement.alias(_full(node, is_batched, size)), result._storage.device)


def _full(node: Node, is_batched: bool, size: int) -> Node:
    return node if is_batched else reduction.expand(node, shape=(size, *node.spec.shape))


def _joined(parts: list[Part], out_dims: object) -> object:
    """The results of all chunks as one, each with the batch where it is wanted."""
    _, back, alike = parts[0]
    columns = zip(*[leaves for leaves, _, _ in parts], strict=True)
    joined = [column[0] if len(column) == 1 else functions.cat(list(column)) for column in columns]
    restored: Any = back(joined)
    if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(restored, TensorBase):
        out_dims = out_dims[0]
    try:
        axes: list[Any] = tree.spread(out_dims, restored)
    except (ValueError, KeyError):
        raise ValueError(
            f"vmap: out_dims is not compatible with the structure of outputs. out_dims is {out_dims}"
        ) from None
    if any(not isinstance(axis, int) and not (axis is None and same) for axis, same in zip(axes, alike, strict=True)):
        raise ValueError(f"vmap: out_dims may be None only where samples have a result in common, got {out_dims}")
    return back([
        leaf[0] if axis is None else leaf.movedim(0, axis) if axis else leaf
        for leaf, axis in zip(joined, axes, strict=True)
    ])  # fmt: skip


@contextmanager
def recording(stand_ins: dict[Node, Node]) -> Iterator[None]:
    """What is recorded inside waits apart: a value that depends on a stand-in is never computed, nor replayed."""
    local = state.default.local
    outer = local.queues
    inner = local.queues = outer.apart(stand_ins)
    thread_state.n_ordinary += 1
    try:
        yield
    finally:
        thread_state.n_ordinary -= 1
        local.queues = outer
        for queue in inner.values():
            for storage in executor.independent(queue):
                storage.wait()


def gradients(
    grad: Call, outputs: object, inputs: object, cotangents: object, create_graph: bool, materialize: bool
) -> tuple[Tensor, ...]:
    """One walk for many vectors along the first axis of `cotangents`: grad with is_grads_batched."""
    vectors: Any = [cotangents] if cotangents is None or isinstance(cotangents, TensorBase) else cotangents

    def walked(*each: Tensor) -> object:
        return grad(outputs, inputs, each, True, create_graph, materialize_grads=materialize)

    grads: tuple[Tensor, ...] = vmap(walked)(*vectors)
    return grads
