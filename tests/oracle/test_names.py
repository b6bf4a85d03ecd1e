"""Every public name of the installed PyTorch works here, or raises NotImplementedError that says why."""

import pytest
import torch

import pywebgpu
from pywebgpu.torch_api import absent
from tests import names


def test_every_public_name_is_here_or_refused() -> None:
    table = names.table()
    missing = {path: count.missing for path, count in table.items() if count.missing}
    assert not missing, "say in pywebgpu/torch_api/absent.py why it is not here, and what is near"
    listed = {path: {name for _, found in absent.NAMES[path] for name in found.split()} for path in absent.NAMES}
    stale = {path: sorted(listed[path].intersection(table[path].here)) for path in listed}
    assert not any(stale.values()), f"they are here, and listed as absent: {stale}"


@pytest.mark.parametrize("path", absent.NAMES)
def test_refusals_say_why(path: str) -> None:
    for reason, listed in absent.NAMES[path]:
        assert len(reason) > 20
        for name in listed.split():
            with pytest.raises(NotImplementedError, match="is not here: "):
                absent.find(path, name)(3)


def test_the_list_of_the_documentation_is_that_of_the_installed_version() -> None:
    assert names.WRITTEN.read_text(encoding="utf-8") == names.text(), "run: python -m tests names --write"


def test_other_names_are_attribute_errors() -> None:
    for holder in (pywebgpu, pywebgpu.nn, pywebgpu.cuda, pywebgpu.ones(1, device="cpu"), pywebgpu.compiler):
        assert not hasattr(holder, "no_such_name")
    assert not pywebgpu.compiler.is_compiling()


def test_completion_lists_what_is_imported_later() -> None:
    assert {"distributions", "func", "vmap", "compile", "sparse_coo_tensor", "no_grad"} <= set(dir(pywebgpu))


def test_tensors_of_other_libraries_are_taken() -> None:
    theirs = torch.arange(6.0, requires_grad=True).reshape(2, 3)
    for made in (pywebgpu.as_tensor(theirs, device="cpu"), pywebgpu.from_dlpack(theirs, device="cpu")):
        assert made.tolist() == theirs.tolist()
        assert made.dtype is pywebgpu.float32
    ours = pywebgpu.ones(2, device="cpu")
    assert torch.from_dlpack(ours).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="__dlpack__"):
        pywebgpu.from_dlpack([1.0])


def test_every_method_says_what_it_does() -> None:
    kind = pywebgpu.Tensor
    methods = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
    assert [name for name in methods if not getattr(kind, name).__doc__] == []
