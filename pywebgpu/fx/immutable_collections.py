"""Lists and dicts that refuse changes: the arguments of nodes, which change by assignment only."""

from __future__ import annotations

from typing import Any, NoReturn

from pywebgpu.utils import _pytree


def _refuse(self: object, *args: object, **options: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. To change the arguments of a torch.fx.Node, "
        "assign to node.args or node.kwargs a copy that has the change"
    )


class immutable_list(list[Any]):
    """A list that cannot change, and has a hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot change, and has a hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (tuple(self.items()),)


_CHANGES: dict[type, str] = {
    immutable_list: "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort",
    immutable_dict: "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update",
}
for _kind, _names in _CHANGES.items():
    for _name in _names.split():
        setattr(_kind, _name, _refuse)
    _base = _pytree.SUPPORTED_NODES[_kind.__base__]  # type: ignore[index]
    _pytree.register_pytree_node(
        _kind,
        _base.flatten_fn,
        lambda leaves, context, kind=_kind, base=_base: kind(base.unflatten_fn(leaves, context)),  # type: ignore[misc]
        flatten_with_keys_fn=_base.flatten_with_keys_fn,
    )
