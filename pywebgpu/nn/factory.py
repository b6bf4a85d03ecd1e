"""torch.nn.factory_kwargs: what a module was told of the tensors that it makes."""

from collections.abc import Mapping
from typing import cast

KNOWN = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: Mapping[str, object] | None) -> dict[str, object]:
    """device, dtype and memory_format of a module's keywords, and those in its `factory_kwargs`.

    Raises: TypeError for others, and for one that is given twice.
    """
    given = dict(kwargs or {})
    found = dict(cast(Mapping[str, object], given.pop("factory_kwargs", {})))
    if given.keys() - set(KNOWN):
        raise TypeError(f"unexpected kwargs {given.keys() - set(KNOWN)}")
    for name in KNOWN:
        if name in given and name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
    return found | given
