"""torch.dtype, torch.layout, torch.memory_format and torch.qscheme: closed types whose values are one object each."""

import copy
import dataclasses
import pickle

import pytest
import torch

import pywebgpu
from pywebgpu import dtypes
from pywebgpu.support import closed_types
from pywebgpu.torch_api import quantized

KINDS = ("dtype", "layout", "memory_format", "qscheme")
VALUES = [*dtypes.ALL, *closed_types.ALL.values(), *quantized.SCHEMES]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_one_object_of_pytorchs_name(value: closed_types.Closed) -> None:
    other = getattr(torch, value.name)
    kind = next(name for name in KINDS if isinstance(value, getattr(pywebgpu, name)))
    assert (repr(value), str(value)) == (repr(other), str(other))
    assert isinstance(other, getattr(torch, kind))
    assert getattr(pywebgpu, value.name) is value
    assert all(pickle.loads(pickle.dumps(value, protocol)) is value for protocol in range(2, 6))
    assert copy.copy(value) is value is copy.deepcopy({"value": value})["value"]
    assert not dataclasses.is_dataclass(value)
    assert hash(value) == hash(value)


@pytest.mark.parametrize("name", KINDS)
def test_programs_make_no_values_and_no_subclasses(name: str) -> None:
    for library in (torch, pywebgpu):
        kind = getattr(library, name)
        with pytest.raises(TypeError, match=f"cannot create 'torch.{name}' instances"):
            kind()
        with pytest.raises(TypeError, match=f"type 'torch.{name}' is not an acceptable base type"):
            type("Own", (kind,), {})
        assert kind.__name__ == name


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_facts_of_dtypes_are_pytorchs(dtype: dtypes.DType) -> None:
    other = getattr(torch, dtype.name)
    for fact in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(dtype, fact) == getattr(other, fact), fact
        with pytest.raises(AttributeError):
            setattr(dtype, fact, None)
    assert repr(dtype.to_real()) == repr(other.to_real())
    if dtype.is_complex or (dtype.is_floating_point and dtype.family != "float8"):
        assert repr(dtype.to_complex()) == repr(other.to_complex())
    limits = "finfo" if dtype.is_floating_point else "iinfo" if dtype.kind is dtypes.Kind.INT else ""
    if limits:
        assert repr(getattr(pywebgpu, limits)(dtype)) == repr(getattr(torch, limits)(other))


@pytest.mark.parametrize("one", dtypes.ALL, ids=repr)
def test_promotion_is_pytorchs(one: dtypes.DType) -> None:
    def promoted(library: object, other: dtypes.DType) -> str:
        try:
            return repr(library.promote_types(getattr(library, one.name), getattr(library, other.name)))
        except RuntimeError as error:
            return str(error)

    for other in dtypes.ALL:
        assert promoted(pywebgpu, other) == promoted(torch, other)


def test_legacy_types_stand_in_unions() -> None:
    def function(x: pywebgpu.FloatTensor | None, y: pywebgpu.LongTensor | int | None = None) -> None: ...

    assert pywebgpu.FloatTensor in (pywebgpu.FloatTensor | None).__args__
    assert function.__annotations__
