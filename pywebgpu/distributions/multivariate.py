"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pywebgpu.distributions import constraints, sampling
from pywebgpu.distributions.continuous import Beta
from pywebgpu.distributions.distribution import Distribution, ExponentialFamily, Sizes
from pywebgpu.distributions.utils import lazy_property

if TYPE_CHECKING:
    from pywebgpu.tensor.tensor import Tensor

torch: Any = import_module("pywebgpu")


class Dirichlet(ExponentialFamily):
    """Probabilities: the shares of gamma numbers in their sum."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _event_dims: ClassVar[dict[str, int]] = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    _total = property(lambda self: self.concentration.sum(-1, True))
    mean = property(lambda self: self.concentration / self._total)

    @property
    def mode(self) -> Tensor:
        a = self.concentration
        less = (a - 1).clamp(min=0.0)
        edge = torch.nn.functional.one_hot(less.argmax(-1), a.shape[-1]).to(a.dtype)
        return torch.where((a < 1).all(-1, keepdim=True), edge, less / less.sum(-1, True))

    @property
    def variance(self) -> Tensor:
        a, total = self.concentration, self._total
        return a * (total - a) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        return sampling.dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return torch.xlogy(a - 1.0, value).sum(-1) + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        digammas = (k - total) * torch.digamma(total) + ((a - 1.0) * torch.digamma(a)).sum(-1)
        return torch.lgamma(a).sum(-1) - torch.lgamma(total) - digammas

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - torch.lgamma(x.sum(-1))


def _whitened(lower: Tensor, difference: Tensor) -> Tensor:
    """The square of the length of L^-1 d."""
    shape = torch.broadcast_shapes(lower.shape[:-2], difference.shape[:-1])
    n = lower.shape[-1]
    columns = difference.expand((*shape, n)).unsqueeze(-1)
    return torch.linalg.solve_triangular(lower.expand((*shape, n, n)), columns, upper=False).pow(2).sum((-2, -1))


def _half_log_det(lower: Tensor) -> Tensor:
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse."""
    upside = torch.linalg.cholesky(torch.flip(precision, (-2, -1)))
    inverse = torch.flip(upside, (-2, -1)).mT
    eye = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return torch.linalg.solve_triangular(inverse, eye.expand(precision.shape), upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors, by one of: covariance matrix, its inverse, its Cholesky factor."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _event_dims: ClassVar[dict[str, int]] = {
        "loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "_unbroadcasted_scale_tril": 2,
    }  # fmt: skip

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        named = {name: value for name, value in matrices.items() if value is not None}
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(named) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = named.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*shape, *matrix.shape[-2:])))
        self.loc = loc.expand((*shape, loc.shape[-1]))
        super().__init__(shape, loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        else:
            lower = torch.linalg.cholesky(matrix) if name == "covariance_matrix" else precision_to_scale_tril(matrix)
            self._unbroadcasted_scale_tril = lower

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        return (lower @ lower.mT).expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        inverse = torch.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand((*self._batch_shape, *self._event_shape, *self._event_shape))

    mean = mode = property(lambda self: self.loc)
    variance = property(
        lambda self: self._unbroadcasted_scale_tril.pow(2).sum(-1).expand((*self._batch_shape, *self._event_shape))
    )

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        eps = self._draw(sample_shape, "randn")
        return self.loc + (self._unbroadcasted_scale_tril @ eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        lower = self._unbroadcasted_scale_tril
        m = _whitened(lower, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + m) - _half_log_det(lower)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + _half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance W W^T + D, where D is diagonal."""

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True
    _event_dims: ClassVar[dict[str, int]] = {"loc": 1, "cov_factor": 2, "cov_diag": 1, "_capacitance_tril": 2}

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        n = loc.shape[-1]
        if cov_factor.dim() < 2 or cov_factor.shape[-2] != n or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m, cov_diag of vectors of {n}")
        self.loc, self.cov_diag = loc.expand((*shape, n)), cov_diag.expand((*shape, n))
        self.cov_factor = cov_factor.expand((*shape, *cov_factor.shape[-2:]))
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        eye = torch.eye(cov_factor.shape[-1], dtype=loc.dtype, device=loc.device)
        self._capacitance_tril = torch.linalg.cholesky(scaled @ self.cov_factor + eye)
        super().__init__(shape, (n,), validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: self.cov_factor.pow(2).sum(-1) + self.cov_diag)
    covariance_matrix = property(lambda self: self.cov_factor @ self.cov_factor.mT + torch.diag_embed(self.cov_diag))
    scale_tril = property(lambda self: torch.linalg.cholesky(self.covariance_matrix))
    precision_matrix = property(lambda self: torch.linalg.inv(self.covariance_matrix))

    def rsample(self, sample_shape: Sizes = ()) -> Tensor:
        eps = self._draw(sample_shape, "randn")
        shape = (*eps.shape[:-1], self.cov_factor.shape[-1])
        low = torch.randn(shape, dtype=eps.dtype, device=eps.device)
        return self.loc + (self.cov_factor @ low.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * eps

    def _log_det(self) -> Tensor:
        return 2 * _half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        difference = value - self.loc
        scaled = (self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ difference.unsqueeze(-1)
        squared_norm = (difference.pow(2) / self.cov_diag).sum(-1)
        m = squared_norm - _whitened(self._capacitance_tril, scaled.squeeze(-1))
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + m)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())


class Wishart(ExponentialFamily):
    """Sums of squares of normal vectors, as matrices. Source: Bartlett's decomposition."""

    arg_constraints: ClassVar[Any] = {
        "df": constraints.greater_than(0), "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True
    _event_dims: ClassVar[dict[str, int]] = {"covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        named = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        arguments = [(name, value) for name, value in named.items() if value is not None]
        if len(arguments) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, like),) = arguments
        validates = self._validate_args if validate_args is None else validate_args
        if validates is not False and self._fails(self.arg_constraints[name], like):
            raise ValueError(
                f"Expected parameter {name} ({type(like).__name__} of shape {tuple(like.shape)}) of distribution "
                f"Wishart to satisfy the constraint {self.arg_constraints[name]!r}, but found invalid values:\n{like}"
            )
        degrees: Any = torch.as_tensor(df, dtype=like.dtype, device=like.device)
        shape = torch.broadcast_shapes(like.shape[:-2], degrees.shape)
        if scale_tril is None:
            factor = precision_to_scale_tril(like) if covariance_matrix is None else torch.linalg.cholesky(like)
        else:
            factor = like
        n = like.shape[-1]
        if bool((degrees <= n - 1).any()):
            raise ValueError(f"Value of df={degrees} expected to be greater than ndim - 1 = {n - 1}.")
        self.df, self.scale_tril = degrees.expand(shape), factor.expand((*shape, n, n))
        super().__init__(shape, (n, n), validate_args=validate_args)

    covariance_matrix = property(lambda self: self.scale_tril @ self.scale_tril.mT)
    precision_matrix = property(lambda self: torch.cholesky_inverse(self.scale_tril))
    mean = property(lambda self: self.df.reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return torch.where(factor > 0, factor, math.nan).reshape((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.reshape((*self._batch_shape, 1, 1)) * (v.pow(2) + outer)

    def rsample(self, sample_shape: Sizes = (), max_try_correction: int | None = None) -> Tensor:
        n = self._event_shape[-1]
        noise = self._draw(sample_shape, "randn").tril(-1)
        degrees = self.df.unsqueeze(-1) - torch.arange(n, dtype=self.df.dtype, device=self.df.device)
        chi = sampling.standard_gamma((0.5 * degrees).expand(noise.shape[:-1])) * 2
        product = self.scale_tril @ (noise + torch.diag_embed(chi.sqrt()))
        return product @ product.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        solved = torch.cholesky_solve(value, self.scale_tril)
        normal = -nu * (p * math.log(2) / 2 + _half_log_det(self.scale_tril)) - torch.mvlgamma(nu / 2, p=p)
        trace = solved.diagonal(dim1=-2, dim2=-1).sum(-1)
        return normal + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet - trace / 2

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        steps = torch.arange(p, dtype=nu.dtype, device=nu.device)
        digamma = torch.digamma((nu.unsqueeze(-1) - steps) / 2).sum(-1)
        scale = (p + 1) * (p * math.log(2) / 2 + _half_log_det(self.scale_tril))
        return scale + torch.mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * digamma + nu * p / 2


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices. Source: Lewandowski, Kurowicka, Joe 2009, the onion method."""

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = torch.as_tensor(concentration, dtype=getattr(concentration, "dtype", torch.float32))
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)
        self._beta = self._marginals()

    def _marginals(self) -> Beta:
        like = self.concentration
        offset = torch.arange(self.dim - 1, dtype=like.dtype, device=like.device)
        offset = torch.cat([torch.zeros(1, dtype=like.dtype, device=like.device), offset])
        most = like.unsqueeze(-1) + 0.5 * (self.dim - 2)
        return Beta(offset + 0.5, most - 0.5 * offset, validate_args=False)

    def expand(self, batch_shape: Sizes, _instance: Distribution | None = None) -> Self:
        return type(self)(self.dim, self.concentration.expand(tuple(batch_shape)), validate_args=False)

    def sample(self, sample_shape: Sizes = ()) -> Tensor:
        with torch.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            u = self._draw(sample_shape, "randn").tril(-1)
            sphere = u / u.norm(dim=-1, keepdim=True).clamp_min(1e-30)
            first = torch.ones(self.dim, 1, dtype=u.dtype, device=u.device)
            first[0] = 0
            w = torch.sqrt(y) * sphere * first
            rest = (1 - (w**2).sum(-1)).clamp(min=torch.finfo(w.dtype).tiny).sqrt()
            return w + torch.diag_embed(rest)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        log_density = (order * diagonal.log()).sum(-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        below = torch.mvlgamma(alpha - 0.5, n)
        constant = 0.5 * n * math.log(math.pi)
        return log_density - (constant + below - torch.lgamma(alpha) * n)
