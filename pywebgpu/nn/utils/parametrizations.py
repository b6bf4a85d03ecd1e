"""What weights are parametrized by: length and direction, the largest singular value, orthogonal matrices."""

from typing import Any

from pywebgpu import linalg
from pywebgpu.autodiff import grad_mode
from pywebgpu.nn import functional
from pywebgpu.nn.module import Module
from pywebgpu.nn.utils import parametrize, reparametrized
from pywebgpu.tensor import create, limits, movement
from pywebgpu.tensor.tensor import Tensor

MAPS = ("matrix_exp", "cayley", "householder")


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return reparametrized.scaled(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return reparametrized.norms(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replaces a parameter by its length (original0) and its direction (original1).

    dim: the axis whose elements have a length each; None for one length. Takes state dicts of the older weight_norm.
    Source: Salimans, Kingma 2016 (arXiv 1602.07868).
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_older(state_dict: dict[str, Any], prefix: str, *_: object) -> None:
        older = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state_dict for key in older):
            for index, key in enumerate(older):
                state_dict[f"{prefix}parametrizations.{name}.original{index}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_older)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.dim()
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            with grad_mode.no_grad():
                matrix = reparametrized.as_matrix(weight, self.dim)
                for part, size in zip("uv", matrix.shape, strict=True):
                    vector = functional.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps)
                    self.register_buffer(f"_{part}", vector)
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, n_power_iterations: int) -> None:
        reparametrized.iterate(matrix, self._u, self._v, n_power_iterations, self.eps, u_first=True)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            normalized: Tensor = functional.normalize(weight, dim=0, eps=self.eps)
            return normalized
        matrix = reparametrized.as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix.detach(), self.n_power_iterations)
        return reparametrized.over_largest(weight, matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by an estimate of its largest singular value, which each access in training improves.

    Source: Miyato et al. 2018 (arXiv 1802.05957).
    """
    weight = _required(module, name)
    dim = reparametrized.default_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


class _Orthogonal(Module):
    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        self.shape, self.orthogonal_map, self.has_base = weight.shape, orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, weight: Tensor) -> Tensor:
        is_wide = weight.shape[-2] < weight.shape[-1]
        x = weight.mT if is_wide else weight  # Whether conjugated or not makes no difference to what maps give.
        rotated = self._reflected(x) if self.orthogonal_map == "householder" else self._rotated(x)
        if self.has_base:
            rotated = self.base @ rotated
        return rotated.mT if is_wide else rotated

    def _rotated(self, x: Tensor) -> Tensor:
        """Columns of the rotation that a skew-symmetric matrix makes."""
        (n, k), x = x.shape[-2:], x.tril()
        if n != k:
            x = movement.cat([x, x.new_zeros(*x.shape[:-1], n - k)], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            rotated: Tensor = skew.matrix_exp()
        else:
            identity = create.eye(n, dtype=x.dtype, device=x.device)
            rotated = linalg.solve(identity - skew * 0.5, identity + skew * 0.5)
        return rotated[..., :k]

    def _reflected(self, x: Tensor) -> Tensor:
        """Columns of the product of reflections by the columns of v: I - v t v^T, of all columns at once.

        Source: Schreiber, Van Loan 1989 (the compact WY form).
        """
        (n, k), below = x.shape[-2:], x.tril(-1)
        identity = create.eye(n, k, dtype=x.dtype, device=x.device)
        v = below + identity
        inner = v.mT @ v
        inverse = inner.triu(1) + (inner.diagonal(dim1=-2, dim2=-1) * 0.5).diag_embed()
        reflected = identity - v @ linalg.solve_triangular(inverse, v[..., :k, :].mT, upper=True)
        return reflected * x.diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)

    @grad_mode.no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        is_wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if is_wide else q
        n, k = tall.shape[-2:]
        if not self.has_base:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            reflected = _reflections(tall)
            return reflected.mT if is_wide else reflected
        if n != k:
            tall = movement.cat([tall, q.new_empty(*tall.shape[:-1], n - k).normal_()], -1)
        self.base = tall.clone() if n == k and _is_orthogonal(tall) else _orthogonal_factor(tall)
        minus: Tensor = -create.eye(*q.shape[-2:], dtype=q.dtype, device=q.device)
        return minus.expand(q.shape).clone()


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keeps a matrix, or a batch of them, orthogonal: by matrix_exp, cayley or householder.

    use_trivialization: the map starts at the identity, from a base that is what was last assigned.
    Source: Lezcano-Casado 2019 (arXiv 1909.09501).
    """
    weight = _required(module, name)
    if weight.dim() < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions.")
    if orthogonal_map is None:
        is_square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("The householder parametrization does not support complex tensors.")
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


def _required(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    identity = create.eye(k, dtype=q.dtype, device=q.device)
    return bool(((q.mH @ q - identity).abs() <= 10 * n * limits.finfo(q.dtype).eps + 1e-5 * identity.abs()).all())


def _orthogonal_factor(x: Tensor) -> Tensor:
    """Q of x = QR whose R has no negative number on its diagonal."""
    q, r = linalg.qr(x)
    factor: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return factor


def _reflections(q: Tensor) -> Tensor:
    """Orthonormal columns as the reflections that make them, below the diagonal, and signs on it."""
    n, k = q.shape[-2:]
    rest, columns, signs = q, [], []
    for index in range(k):
        x = rest[..., index:, index]
        head, tail = x[..., :1], x[..., 1:]
        is_flat = (tail * tail).sum(-1, keepdim=True) == 0
        end = (-x.norm(2, -1, keepdim=True)).where(head >= 0, x.norm(2, -1, keepdim=True))
        v = movement.cat([head * 0 + 1, (tail / (head - end)).masked_fill(is_flat, 0)], -1)
        scale = ((end - head) / end).masked_fill(is_flat, 0)
        lower = rest[..., index:, :]
        lower = lower - (scale * v).unsqueeze(-1) * (v.unsqueeze(-2) @ lower)
        rest = movement.cat([rest[..., :index, :], lower], -2)
        columns.append(movement.cat([v.new_zeros(*v.shape[:-1], index), v], -1))
        signs.append((-head.sign()).where(is_flat, end.sign()))
    below = movement.cat([column.unsqueeze(-1) for column in columns], -1).tril(-1)
    diagonal = create.eye(n, k, dtype=q.dtype, device=q.device) * movement.cat(signs, -1).unsqueeze(-2)
    return below + diagonal
