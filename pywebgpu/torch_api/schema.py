"""Schemas of operators: `name(Tensor a, float[] b=None, *, Tensor(c!) out) -> Tensor`, read and made of annotations."""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pywebgpu import devices
from pywebgpu.dtypes import DType
from pywebgpu.tensor.tensor import Tensor

REQUIRED = inspect.Parameter.empty
# What annotations are called in schemas.
KINDS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", DType: "ScalarType",
    devices.device: "Device", int | float | bool: "Scalar",
}  # fmt: skip
CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False, "Mean": 1, "Sum": 2, "[]": []}
ITEM = re.compile(r"(?P<kind>[\w.]+)(?P<alias>\([^()]*\))?(?P<rest>[^ ]*)(?: (?P<name>\w+))?(?:=(?P<default>.*))?$")


@dataclass(frozen=True)
class Argument:
    """An argument, or a result. type: without aliases, such as "Tensor[]?". is_write: whether calls change it."""

    name: str
    type: str
    default_value: Any = REQUIRED
    kwarg_only: bool = False
    is_write: bool = False

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self.default_value is not REQUIRED


@dataclass(frozen=True)
class FunctionSchema:
    """A name, arguments and results. text: the whole as it was written."""

    name: str
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    text: str

    @property
    def is_mutable(self) -> bool:
        """Whether calls change an argument."""
        return any(argument.is_write for argument in self.arguments)

    def __str__(self) -> str:
        return self.text

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by name. Raises RuntimeError for others than it has."""
        positional = [argument for argument in self.arguments if not argument.kwarg_only]
        if len(args) > len(positional):
            raise RuntimeError(
                f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self}"
            )
        bound = dict(zip((argument.name for argument in positional), args, strict=False))
        for name, value in kwargs.items():
            if name in bound or all(name != argument.name for argument in self.arguments):
                what = "was given twice" if name in bound else "is unknown"
                raise RuntimeError(f"{self.name}(): the keyword argument '{name}' {what}. Declaration: {self}")
            bound[name] = value
        for argument in self.arguments:
            if argument.name not in bound:
                if not argument.has_default_value():
                    raise RuntimeError(
                        f"{self.name}() is missing value for argument '{argument.name}'. Declaration: {self}"
                    )
                bound[argument.name] = argument.default_value
        return {argument.name: bound[argument.name] for argument in self.arguments}

    def accepts(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether a call has the right arguments, as far as their types say."""
        try:
            bound = self.bind(args, kwargs)
        except RuntimeError:
            return False
        return all(_is_of(bound[argument.name], argument.type) for argument in self.arguments)


def _is_of(value: Any, kind: str) -> bool:
    if kind.endswith("?"):
        return value is None or _is_of(value, kind[:-1])
    if match := re.fullmatch(r"(.+)\[\d*\]", kind):
        return isinstance(value, list | tuple) and all(_is_of(item, match[1]) for item in value)
    numbers = {"int": int, "SymInt": int, "float": (int, float), "bool": bool, "str": str, "Tensor": Tensor}
    expected: Any = numbers.get(kind)
    return expected is None or isinstance(value, expected)


def parse_schema(text: str) -> FunctionSchema:
    """A schema of its text. Raises RuntimeError for what is none."""
    match = re.fullmatch(r"\s*([\w:]*)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
    if match is None:
        raise RuntimeError(f"expected a schema such as 'name(Tensor a) -> Tensor', got {text!r}")
    name, overload, inside, result = match.groups()
    arguments, only_names = [], False
    for part in _parts(inside):
        if part == "*":
            only_names = True
        else:
            arguments.append(_argument(part, only_names=only_names))
    results = _parts(result[1:-1]) if result.startswith("(") and result.endswith(")") else [result]
    returns = tuple(_argument(part, only_names=False) for part in results)
    return FunctionSchema(name, overload or "", tuple(arguments), returns, text.strip())


def _parts(text: str) -> list[str]:
    """What commas separate, outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text + ","):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [part for part in parts if part]


def _argument(text: str, *, only_names: bool) -> Argument:
    match = ITEM.match(re.sub(r"\s*=\s*", "=", text))
    if match is None:
        raise RuntimeError(f"expected an argument such as 'Tensor a', got {text!r}")
    default = match["default"]
    value: Any = REQUIRED
    if default is not None:
        value = CONSTANTS[default] if default in CONSTANTS else _constant(default)
    kind = match["kind"] + match["rest"]
    return Argument(match["name"] or "", kind, value, only_names, "!" in (match["alias"] or ""))


def _constant(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return getattr(import_module("pywebgpu"), text, text)


def _kind(annotation: Any) -> str | None:
    """What an annotation is called; None of one that schemas do not have."""
    if annotation in KINDS:
        return KINDS[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [part for part in parts if part is not type(None)]
        if len(rest) == len(parts):
            return "Scalar" if {*parts} == {int, float, bool} else None
        inner = _kind(typing.Union[tuple(rest)])  # noqa: UP007 - of as many as there are
        return inner and f"{inner}?"
    if origin in (list, Sequence) and len(parts) == 1:
        inner = _kind(parts[0])
        return inner and f"{inner}[]"
    return None


def _changed(mutates_args: str | Iterable[str]) -> str | set[str]:
    """The names of what a function changes, or "unknown"."""
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string "
            "'unknown'. "
        )
    return mutates_args if isinstance(mutates_args, str) else {*mutates_args}


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of a function by its annotations. mutates_args: names of tensors that it changes, or "unknown".

    Raises: ValueError for an argument without a type that schemas have.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)

    def wrong(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    changed = _changed(mutates_args)
    texts: list[str] = []
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise wrong("We do not support positional-only args, varargs, or varkwargs.")
        if name not in hints:
            raise wrong(f"Parameter {name} must have a type annotation.")
        kind = _kind(hints[name])
        if kind is None:
            raise wrong(f"Parameter {name} has unsupported type {parameter.annotation}.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        is_tensor = kind.startswith("Tensor")
        if name in changed and not is_tensor and changed != "unknown":
            raise wrong(
                f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated"
            )
        if is_tensor and (changed == "unknown" or name in changed):
            kind = f"Tensor(a{index}!){kind.removeprefix('Tensor')}"
        default = "" if parameter.default is REQUIRED else f"={_text(parameter.default)}"
        texts.append(f"{kind} {name}{default}")
    if not isinstance(changed, str) and (unknown := changed - {*signature.parameters}):
        raise wrong(f"{unknown} in mutates_args were not found in the custom op's signature.")
    if "return" not in hints:
        raise wrong("No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(texts)}) -> {_returned(hints['return'], wrong)}"


def _text(value: Any) -> str:
    if isinstance(value, str | devices.device):
        return f'"{value}"'
    return str(value).removeprefix("torch.")


def _returned(annotation: Any, wrong: Callable[[str], ValueError]) -> str:
    if annotation in (None, type(None)):
        return "()"
    if typing.get_origin(annotation) is tuple:
        kinds = [_kind(part) for part in typing.get_args(annotation)]
        if None in kinds:
            raise wrong(f"Return has unsupported type {annotation}.")
        return f"({', '.join(map(str, kinds))})"
    kind = _kind(annotation)
    if kind is None:
        raise wrong(f"Return has unsupported type {annotation}.")
    return kind
