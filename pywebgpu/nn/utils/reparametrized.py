"""Weights computed from other parameters, by PyTorch's older functions: the module keeps its class and its names.

A module computes such a weight where it is asked for (ModuleTree.__getattr__), so that no step leaves a tensor behind.
"""

import warnings
from typing import Any

from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import conv, functional
from pywebgpu.nn.module import Module
from pywebgpu.nn.parameter import Parameter
from pywebgpu.nn.tree import Computed, ModuleTree
from pywebgpu.tensor.tensor import Tensor


class WeightNorm(Computed):
    """weight = g * v / |v|, of the parameters weight_g and weight_v; the norm is over all axes but `dim`."""

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: ModuleTree) -> Tensor:
        return scaled(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)


class SpectralNorm(Computed):
    """weight = weight_orig / s, where s is the estimate u W v of its largest singular value.

    In training a forward pass makes `n_power_iterations` steps of the power method on the buffers weight_u, weight_v.
    """

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: ModuleTree) -> Tensor:
        weight, u, v = self._parts(module)
        return over_largest(weight, as_matrix(weight, self.dim), u, v)

    def __call__(self, module: Module, inputs: object) -> None:
        """The hook before each forward pass."""
        if module.training:
            weight, u, v = self._parts(module)
            iterate(as_matrix(weight, self.dim), u, v, self.n_power_iterations, self.eps)

    def _parts(self, module: ModuleTree) -> tuple[Any, Any, Any]:
        return tuple(getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))


@grad_mode.no_grad()
def iterate(
    matrix: Tensor, u: Tensor, v: Tensor, n_power_iterations: int, eps: float, *, u_first: bool = False
) -> None:
    """Steps of the power method: u and v go to the singular vectors of the largest singular value."""
    for _ in range(n_power_iterations):
        for is_u in (True, False) if u_first else (False, True):
            vector = u if is_u else v
            vector.copy_(functional.normalize(matrix.mv(v) if is_u else matrix.mH.mv(u), dim=0, eps=eps))


def over_largest(weight: Tensor, matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """A weight over its largest singular value, whose vectors are u and v."""
    normalized: Tensor = weight / u.clone().conj().dot(matrix.mv(v.clone()))
    return normalized


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """A weight with `dim` as its rows and all else as its columns."""
    moved = weight.permute(dim, *(axis for axis in range(weight.dim()) if axis != dim)) if dim != 0 else weight
    return moved.reshape(moved.shape[0], -1)


def norms(weight: Tensor, dim: int) -> Tensor:
    """The norm over all axes but `dim`, which stays; over all for -1, as one number."""
    if dim == -1:
        return weight.norm()
    others = tuple(axis for axis in range(weight.dim()) if axis != dim % weight.dim())
    return weight.norm(2, others, keepdim=True) if others else weight.abs()


def scaled(v: Tensor, g: Tensor, dim: int) -> Tensor:
    return v * (g / norms(v, dim))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replaces a parameter by its length and its direction. Source: Salimans, Kingma 2016 (arXiv 1602.07868)."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    norm = WeightNorm(name, -1 if dim is None else dim)
    weight = _taken(module, norm)
    with grad_mode.no_grad():
        module.register_parameter(f"{name}_g", Parameter(norms(weight, norm.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    module._computed_tensors[name] = norm
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again. Raises: ValueError where there is no such norm."""
    return _removed(module, name, WeightNorm, ("g", "v"))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its largest singular value. Source: Miyato et al. 2018 (arXiv 1802.05957)."""
    norm = SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    weight = _taken(module, norm)
    with grad_mode.no_grad():
        rows, columns = as_matrix(weight, norm.dim).shape
        u, v = (functional.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns))
    module.register_parameter(f"{name}_orig", weight)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module._computed_tensors[name] = norm
    module.register_forward_pre_hook(norm)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again. Raises: ValueError where there is no such norm."""
    return _removed(module, name, SpectralNorm, ("orig", "u", "v"))


def default_dim(module: Module) -> int:
    """The axis of a weight that counts its outputs."""
    return 1 if isinstance(module, conv.ConvTranspose1d | conv.ConvTranspose2d | conv.ConvTranspose3d) else 0


def _taken(module: Module, norm: WeightNorm | SpectralNorm) -> Parameter:
    """The parameter that a norm replaces, taken out of its module."""
    known = module.__dict__.setdefault("_computed_tensors", {})
    kind = "weight_norm" if isinstance(norm, WeightNorm) else "spectral_norm"
    if isinstance(known.get(norm.name), type(norm)):
        raise RuntimeError(f"Cannot register two {kind} hooks on the same parameter {norm.name}")
    weight = module._parameters[norm.name]
    if weight is None:
        raise ValueError(f"`{type(norm).__name__}` cannot be applied as parameter `{norm.name}` is None")
    if hasattr(weight, "materialize"):
        raise ValueError(
            f"The module passed to `{type(norm).__name__}` can't have uninitialized parameters. Make sure to run the "
            "dummy forward before applying a norm of its weight"
        )
    delattr(module, norm.name)
    return weight


def _removed(module: Module, name: str, kind: type[Any], parts: tuple[str, ...]) -> Module:
    norm = module.__dict__.get("_computed_tensors", {}).get(name)
    if not isinstance(norm, kind):
        raise ValueError(
            f"{'weight_norm' if kind is WeightNorm else 'spectral_norm'} of '{name}' not found in {module}"
        )
    with grad_mode.no_grad():
        weight = norm.compute_weight(module)
    del module._computed_tensors[name]
    for part in parts:
        delattr(module, f"{name}_{part}")
    for key, hook in list(module._forward_pre_hooks.items()):
        if hook is norm:
            del module._forward_pre_hooks[key]
    module.register_parameter(name, Parameter(weight.detach()))
    return module
