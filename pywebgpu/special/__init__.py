"""torch.special: elementwise functions, made of tensor methods, so they run wherever those do.

Polynomials that were fitted to float32, series and recurrences; in float64 the functions of doubles.py.
"""

from importlib import import_module
from typing import Any

from pywebgpu.ir.surface import RECORDS as _RECORDS
from pywebgpu.support.lazy import names as _names

_NAMES = {
    "bessel": (
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 i0 i0e i1 i1e modified_bessel_i0 modified_bessel_i1 "
        "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"
    ),
    "gamma": "gammainc gammaincc igamma igammac polygamma zeta",
    "normal": "entr erfcx log_ndtr ndtr ndtri xlog1py",
    "polynomials": (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
        "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
        "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
        "shifted_chebyshev_polynomial_w"
    ),
}
# Those that torch has in its own namespace, too, and there by another name.
_SHARED = {"gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma"}
_SHARED |= {name: name for name in ["digamma", "log_softmax", "logit", "logsumexp", "round", "softmax"]}
_SHARED |= {surface.special: surface.names.split()[0] for surface in _RECORDS.values() if surface.special}


def _shared(name: str) -> Any:
    shared_name = _SHARED.get(name)
    return None if shared_name is None else getattr(import_module("pywebgpu"), shared_name)


__getattr__, __dir__, __all__ = _names(__name__, _NAMES, _shared)
__all__ += list(_SHARED)
