"""torch.return_types: tuples whose parts have names, as sort, max, svd and their like return."""

from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any

from pywebgpu.support import lazy

_FIELDS = {
    "values indices": "sort topk kthvalue mode median nanmedian max min cummax cummin",
    "min max": "aminmax",
    "mantissa exponent": "frexp",
    "hist bin_edges": "histogram histogramdd",
    "Q R": "qr linalg_qr",
    "U S V": "svd",
    "U S Vh": "linalg_svd",
    "P L U": "linalg_lu lu_unpack",
    "LU pivots": "linalg_lu_factor",
    "LU pivots info": "linalg_lu_factor_ex",
    "LD pivots": "linalg_ldl_factor",
    "LD pivots info": "linalg_ldl_factor_ex",
    "L info": "linalg_cholesky_ex",
    "inverse info": "linalg_inv_ex",
    "result info": "linalg_solve_ex",
    "sign logabsdet": "slogdet linalg_slogdet",
    "eigenvalues eigenvectors": "linalg_eig linalg_eigh",
    "solution residuals rank singular_values": "linalg_lstsq",
    "solution cloned_coefficient": "triangular_solve",
    "a tau": "geqrf",
}
_NAMES = {name: tuple(fields.split()) for fields, names in _FIELDS.items() for name in names.split()}


class _Result(tuple[Any, ...]):
    """What a function of several results returns: a tuple, made of its parts, which have names as well."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __new__(cls, *parts: object) -> "_Result":
        return tuple.__new__(cls, parts)

    @classmethod
    def _make(cls, parts: Iterable[Any]) -> "_Result":
        return cls(*parts)

    def __repr__(self) -> str:
        parts = ",\n".join([f"{name}={part!r}" for name, part in zip(self._fields, self, strict=True)])
        return f"torch.return_types.{type(self).__name__}(\n{parts})"

    def __reduce__(self) -> tuple[object, ...]:
        return of, (type(self).__name__, tuple(self))


@lru_cache(None)
def _kind(name: str) -> type[_Result]:
    fields = _NAMES[name]
    parts = {field: property(itemgetter(index)) for index, field in enumerate(fields)}
    return type(name, (_Result,), {"__slots__": (), "__module__": __name__, "_fields": fields, **parts})


def of(name: str, parts: Iterable[Any]) -> tuple[Any, ...]:
    """The results of a function of torch, with their names."""
    return _kind(name)(*parts)


def __getattr__(name: str) -> type[_Result]:
    if name.removesuffix("_out") in _NAMES:
        return _kind(name.removesuffix("_out"))
    kind: type[_Result] = lazy.absent(__name__)(name)
    return kind
