"""torch.utils._pytree: nested containers as their leaves and what is around them. Classes can be registered.

None is a leaf; the keys of a dict keep their order.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pywebgpu.ir.observer import share

PyTree = Any
Context = Any
IsLeaf = Callable[[PyTree], bool]
KeyPath = tuple[Any, ...]
Types = type | tuple[type, ...] | Callable[[Any], bool]


class NodeDef(NamedTuple):
    """How containers of a class are taken apart, and made."""

    type: type
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None


@dataclass(frozen=True)
class SequenceKey:
    """The place of a child in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The key of a child."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of a child."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


@dataclass(frozen=True)
class TreeSpec:
    """A tree without its leaves. type: the class of its container; None of a leaf."""

    type: Any
    context: Context
    children_specs: list[TreeSpec] = field(default_factory=list)

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    @property
    def num_leaves(self) -> int:
        return 1 if self.type is None else sum(child.num_leaves for child in self.children_specs)

    @property
    def num_nodes(self) -> int:
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        return [*self.children_specs]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves. Raises ValueError for another number of them."""
        values = [*leaves]
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return _made(self, iter(values))

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """What lies in a tree where this one has leaves. Raises ValueError where it has another container."""
        if self.type is None:
            return [tree]
        kind = _kind(tree)
        if kind is not self.type and not {kind, self.type} <= _MAPPINGS:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = SUPPORTED_NODES[cast(type, kind)].flatten_fn(tree)
        if self.type in _MAPPINGS:
            keys = self.context[1] if self.type is defaultdict else self.context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {[*keys]!r}, but got {[*tree]!r}.")
            children = [tree[key] for key in keys]
        elif len(children) != len(self.children_specs):
            expected = len(self.children_specs)
            raise ValueError(f"Node arity mismatch; expected {expected}, but got {len(children)}.")
        elif self.type not in (list, tuple, deque) and context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return [
            part
            for spec, child in zip(self.children_specs, children, strict=True)
            for part in spec.flatten_up_to(child)
        ]


class LeafSpec(TreeSpec):
    """That of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF_SPEC = LeafSpec()


def _made(spec: TreeSpec, leaves: Iterator[Any]) -> PyTree:
    if spec.type is None:
        return next(leaves)
    return SUPPORTED_NODES[spec.type].unflatten_fn(
        [_made(child, leaves) for child in spec.children_specs], spec.context
    )


# Classes


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Context]],
    unflatten_fn: Callable[[Iterable[Any], Context], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: object = None,
    from_dumpable_context: object = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None = None,
) -> None:
    """Makes containers of a class nodes. Raises ValueError for a class that is known."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    del SUPPORTED_NODES[cls]


def register_constant(cls: type) -> None:
    """Makes objects of a class parts of a tree's structure, which are compared by `==`."""
    register_pytree_node(cls, lambda value: ([], value), lambda leaves, value: value)


def is_namedtuple(obj: object) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: object) -> bool:
    return is_namedtuple_class(type(obj))


def is_namedtuple_class(cls: type) -> bool:
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and hasattr(cls, "_make")


def _of_sequence(kind: type) -> NodeDef:
    def with_keys(values: Any) -> tuple[list[tuple[Any, Any]], Context]:
        return [(SequenceKey(index), value) for index, value in enumerate(values)], None

    return NodeDef(kind, lambda values: ([*values], None), lambda leaves, context: kind(leaves), with_keys)


def _of_mapping(kind: type) -> NodeDef:
    def with_keys(values: Any) -> tuple[list[tuple[Any, Any]], Context]:
        return [(MappingKey(key), value) for key, value in values.items()], [*values]

    return NodeDef(
        kind,
        lambda values: ([*values.values()], [*values]),
        lambda leaves, keys: kind(zip(keys, leaves, strict=True)),
        with_keys,
    )


_named = NodeDef(
    tuple,
    lambda values: ([*values], type(values)),
    lambda leaves, kind: kind(*leaves),
    lambda values: ([(GetAttrKey(name), getattr(values, name)) for name in values._fields], type(values)),
)
_with_default = NodeDef(
    defaultdict,
    lambda values: ([*values.values()], [values.default_factory, [*values]]),
    lambda leaves, context: defaultdict(context[0], zip(context[1], leaves, strict=True)),
    lambda values: ([(MappingKey(key), value) for key, value in values.items()], [values.default_factory, [*values]]),
)
_queue = NodeDef(
    deque,
    lambda values: ([*values], values.maxlen),
    lambda leaves, maxlen: deque(leaves, maxlen=maxlen),
    lambda values: ([(SequenceKey(index), value) for index, value in enumerate(values)], values.maxlen),
)


class _NamedTuple:
    """Stands for the class of all named tuples."""


SUPPORTED_NODES: dict[type, NodeDef] = share("nodes of trees", {
    tuple: _of_sequence(tuple), list: _of_sequence(list), dict: _of_mapping(dict),
    OrderedDict: _of_mapping(OrderedDict),
    defaultdict: _with_default, deque: _queue, _NamedTuple: _named,
})  # fmt: skip
BUILTIN_TYPES = frozenset({*SUPPORTED_NODES} - {_NamedTuple})
_MAPPINGS = frozenset({dict, OrderedDict, defaultdict})


def _kind(tree: PyTree) -> type | None:
    """What a container is registered as; None of a leaf."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return _NamedTuple if is_namedtuple_class(kind) else None


def _private_names() -> dict[str, Callable[..., Any]]:
    """How containers of Python's classes are taken apart, by PyTorch's names: `_dict_flatten` ..."""
    names: dict[str, Callable[..., Any]] = {}
    for kind, node in SUPPORTED_NODES.items():
        stem = "namedtuple" if kind is _NamedTuple else kind.__name__.lower()
        names |= {f"_{stem}_flatten": node.flatten_fn, f"_{stem}_unflatten": node.unflatten_fn}
        if node.flatten_with_keys_fn is not None:
            names[f"_{stem}_flatten_with_keys"] = node.flatten_with_keys_fn
    return names


globals().update(_private_names())


def is_structseq_class(cls: type) -> bool:
    """Whether it is a class of C's tuples with names, as time.struct_time."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "n_sequence_fields", None), int)


def is_structseq_instance(obj: object) -> bool:
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether it is such a tuple, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree: PyTree) -> Any:
    """What a container is registered as; its class where it is a leaf."""
    return namedtuple if is_namedtuple_class(type(tree)) else type(tree)


# Leaves


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a tree is a leaf by itself."""
    return (is_leaf is not None and is_leaf(tree)) or _kind(tree) is None


_is_leaf = tree_is_leaf


def tree_flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and what is around them. is_leaf: says of containers, too, that they are leaves."""
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves, is_leaf)


def _collect(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf | None) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = cast(type, _kind(tree))
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_collect(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree with these leaves. Raises TypeError for what is no TreeSpec, ValueError for another number of leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_leaves(value)]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """The same tree of what a function makes of each leaf, and of what lies there in other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Calls a function with each leaf, and returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(type_or_types_or_pred: Types, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorates a function of leaves of some classes, or of those that a predicate picks; others stay."""
    picks = _predicate(type_or_types_or_pred)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(func)
        def call(leaf: Any) -> Any:
            return func(leaf) if picks(leaf) else leaf

        return call

    return decorate


def _predicate(types: Types) -> Callable[[Any], bool]:
    if isinstance(types, type | tuple):
        return lambda leaf: isinstance(leaf, types)
    return types if callable(types) else lambda leaf: isinstance(leaf, types)


def tree_map_only(
    type_or_types_or_pred: Types, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Types, /, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf | None = None
) -> PyTree:
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(types: Types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if _predicate(types)(leaf))


def tree_any_only(types: Types, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if _predicate(types)(leaf))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf | None = None) -> list[Any] | None:
    """A leaf for each leaf of a spec: one stands for all that is below its place. None where containers differ."""
    if treespec.type is None:
        return [tree]
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = cast(type, _kind(tree))
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if kind is not treespec.type or len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [
        _broadcast_to_and_flatten(child, spec, is_leaf)
        for child, spec in zip(children, treespec.children_specs, strict=True)
    ]
    return None if None in parts else [leaf for part in parts if part is not None for leaf in part]


# Paths


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """As tree_flatten, with the keys that lead to each leaf."""
    return [*_with_paths((), tree, is_leaf)], tree_structure(tree, is_leaf)


def _with_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf | None) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[cast(type, _kind(tree))]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """As tree_map; the function is called with the keys that lead to a leaf first."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    return spec.unflatten(map(func, paths, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def keystr(kp: KeyPath) -> str:
    """Keys as Python writes them."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies where keys lead."""
    return functools.reduce(lambda value, key: key.get(value), kp, obj)
