"""The module safetensors.torch: tensors and modules in files. Tensors that share memory are stored once."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pywebgpu.io import safetensors as files
from pywebgpu.nn import module
from pywebgpu.tensor import tensor

Path = str | os.PathLike[str]
Tensors = Mapping[str, tensor.Tensor]


def save_file(tensors: Tensors, filename: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes tensors to a file. Raises: ValueError for a tensor that is not contiguous, sparse, or no tensor;
    RuntimeError for tensors that share memory."""
    _check(tensors)
    files.save_file(tensors, filename, metadata)


def save(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of the file that `save_file` writes."""
    _check(tensors)
    return files.save(tensors, metadata)


def load_file(filename: Path, device: Any = "cpu", *, backend: str = "mmap") -> dict[str, tensor.Tensor]:
    """The tensors of a file."""
    return files.load_file(filename, device)


def load(data: bytes) -> dict[str, tensor.Tensor]:
    """The tensors of a file given as its bytes."""
    return files.load(data, "cpu")


def save_model(
    model: module.Module, filename: Path, metadata: Mapping[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Writes a module's state to a file; of names that share memory one is stored, and the metadata names it."""
    state = dict(model.state_dict())
    texts = dict(metadata or {})
    for kept, others in _duplicates(state).items():
        for name in others:
            texts.setdefault(name, kept)
            del state[name]
    save_file(
        {name: value.contiguous() if force_contiguous else value for name, value in state.items()}, filename, texts
    )


def load_model(
    model: module.Module, filename: Path, strict: bool = True, device: Any = "cpu", *, backend: str = "mmap"
) -> tuple[set[str], list[str]]:
    """Loads a module's state from a file; returns the names that are missing in it, and those that the module has not.

    Raises: RuntimeError where there are any, unless `strict` is False.
    """
    state = load_file(filename, device)
    shared = {name for others in _duplicates(dict(model.state_dict()), state).values() for name in others}
    missing, unexpected = model.load_state_dict(state, strict=False)
    missed = set(missing) - shared
    surplus = [*unexpected, *(name for name in sorted(shared) if name not in missing)]
    if strict and (missed or surplus):
        text = f"Error(s) in loading state_dict for {type(model).__name__}:"
        for label, names in (("Missing", missed), ("Unexpected", surplus)):
            text += f"\n    {label} key(s) in state_dict: {', '.join(map(repr, sorted(names)))}" if names else ""
        raise RuntimeError(text)
    return missed, surplus


def storage_ptr(tensor: tensor.Tensor) -> Any:
    """What names the memory that a tensor lies in; 0 where it has none."""
    return tensor.untyped_storage().data_ptr()


def storage_size(tensor: tensor.Tensor) -> int:
    """The bytes of the memory that a tensor lies in."""
    return int(tensor.untyped_storage().nbytes())


def _check(tensors: Tensors) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, value in tensors.items():
        if not isinstance(value, tensor.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(value)}")
        if value.is_sparse:
            raise ValueError(f"`{name}` is sparse: make it dense by `.to_dense()`")
    if shared := [names for names in _sharing(tensors) if len(names) > 1]:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
            f"loading them again: {shared}. Save the module by `save_model`."
        )
    for name, value in tensors.items():
        if not value.is_contiguous():
            raise ValueError(f"You are trying to save a non contiguous tensor: `{name}`: call `.contiguous()` on it")


def _sharing(tensors: Tensors) -> list[set[str]]:
    """The names of each memory: those whose bytes overlap."""
    memories: dict[tuple[str, Any], list[str]] = defaultdict(list)
    for name, value in tensors.items():
        if not value.is_meta and (address := storage_ptr(value)) != 0:
            memories[str(value.device), address].append(name)
    groups: list[set[str]] = []
    for names in memories.values():
        end = -math.inf
        for name in sorted(names, key=lambda name: _range(tensors[name])):
            first, last = _range(tensors[name])
            if first >= end:
                groups.append(set())
            groups[-1].add(name)
            end = max(end, last)
    return groups


def _range(value: tensor.Tensor) -> tuple[int, int]:
    """The first byte of its memory that a tensor covers, and the one behind its last."""
    span = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    first = value.storage_offset() * value.dtype.itemsize
    return first, first + (span + 1) * value.dtype.itemsize if value.numel() else first


def _duplicates(state: Tensors, preferred: Iterable[str] = ()) -> dict[str, list[str]]:
    """For each memory of several names the name that is stored, which covers all of it, and the others."""
    kept: dict[str, list[str]] = {}
    for names in _sharing(state):
        if len(names) < 2:
            continue
        sizes = {name: state[name].numel() * state[name].dtype.itemsize for name in names}
        complete = sorted(name for name in names if sizes[name] == storage_size(state[name]))
        if not complete:
            raise RuntimeError(
                f"Error while trying to find names to remove to save state dict: {names} share memory in parts"
            )
        chosen = next((name for name in complete if name in set(preferred)), complete[0])
        kept[chosen] = sorted(names - {chosen})
    return kept
