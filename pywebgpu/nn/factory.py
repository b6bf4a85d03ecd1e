"""torch.nn.factory_kwargs: what a module was told of the tensors that it makes."""

from collections.abc import Mapping
from typing import cast

KNOWN = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: Mapping[str, object] | None) -> dict[str, object]:
    """device, dtype and memory_format of a module's keywords, and those in its `factory_kwargs`.

    Raises: TypeError for others, and for one that is given twice.
    """
    options = dict(kwargs or {})
    factory = dict(cast(Mapping[str, object], options.pop("factory_kwargs", {})))
    if options.keys() - set(KNOWN):
        raise TypeError(f"unexpected kwargs {options.keys() - set(KNOWN)}")
    for name in KNOWN:
        if name in options and name in factory:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
    return factory | options
