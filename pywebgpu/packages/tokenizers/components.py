"""What a tokenizer is made of, as records: each is a node of the JSON file of a tokenizer, and computes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

Json = dict[str, Any]
Fields = Mapping[str, Any]
changes = [0]  # how often a component changed: whoever made something of one compares it


class Component:
    """A record of a type. FIELDS: its fields, with what they are where nobody says it. Arguments are in their order."""

    FIELDS: ClassVar[Fields] = {}
    ARGUMENTS: ClassVar[Mapping[str, str]] = {}  # fields whose argument has another name
    PARTS = ""  # the field that holds further components

    def __init__(self, *values: Any, **options: Any) -> None:
        names = list(self.FIELDS)
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} arguments, not {len(values)}")
        renamed = {self.ARGUMENTS.get(name, name): value for name, value in options.items()}
        fields = {**self.FIELDS, **dict(zip(names, values, strict=False)), **renamed}
        if unknown := renamed.keys() - self.FIELDS.keys():
            raise TypeError(f"{type(self).__name__} has no argument {', '.join(sorted(unknown))}")
        vars(self).update({name: self._field(name, value) for name, value in fields.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        changes[0] += 1
        object.__setattr__(self, name, self._field(name, value) if name in self.FIELDS else value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def _field(self, name: str, value: Any) -> Any:
        """What the record keeps of an argument."""
        return list(value) if name == self.PARTS else value

    def to_json(self) -> Json:
        """The node of the file."""
        fields = {name: _plain(vars(self)[name]) for name in self.FIELDS}
        return {"type": type(self).__name__, **fields}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Component:
        """A component as a file has it; fields that are not known here stay as they are."""
        component = cls.__new__(cls)
        known = {name: fields.get(name, default) for name, default in cls.FIELDS.items()}
        vars(component).update(known)
        return component

    def __getstate__(self) -> Any:
        return dict(vars(self))

    def __setstate__(self, state: Any) -> None:
        vars(self).update(json.loads(state) if isinstance(state, bytes) else state)


class Listed(Component):
    """A component that is several, one after the other."""

    def __getitem__(self, index: int) -> Any:
        return vars(self)[self.PARTS][index]

    def __setitem__(self, index: int, part: Any) -> None:
        changes[0] += 1
        vars(self)[self.PARTS][index] = part

    def __len__(self) -> int:
        return len(vars(self)[self.PARTS])


class Regex:
    """A regular expression as a pattern; a string is itself."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __repr__(self) -> str:
        return f"Regex({self.pattern!r})"


def pattern(value: Any) -> Any:
    """A pattern as files have it."""
    if isinstance(value, Regex):
        return {"Regex": value.pattern}
    return {"String": value} if isinstance(value, str) else value


def camel(value: Any) -> Any:
    """A choice as files have it: MergedWithNext for merged_with_next."""
    return (
        "".join(word.capitalize() for word in value.split("_")) if isinstance(value, str) and value.islower() else value
    )


def reader(base: type[Component]) -> Any:
    """What makes the components of a kind from a file's nodes, by the names of their classes."""

    def read(node: Mapping[str, Any] | None) -> Any:
        if node is None:
            return None
        kinds = {kind.__name__: kind for kind in _kinds(base)}
        kind = kinds.get(node["type"])
        if kind is None:
            raise ValueError(f"{node['type']} is no {base.__name__} of: {', '.join(sorted(kinds))}")
        component = kind.of_fields(node)
        if kind.PARTS:
            vars(component)[kind.PARTS] = [read(part) for part in node[kind.PARTS]]
        return component

    return read


def _kinds(base: type[Component]) -> list[type[Component]]:
    return [kind for child in base.__subclasses__() for kind in (child, *_kinds(child))]


def _plain(value: Any) -> Any:
    if isinstance(value, Component):
        return value.to_json()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
