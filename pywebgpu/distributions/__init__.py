"""torch.distributions' names. A family is imported when one of its names is first asked for."""

from importlib import import_module
from types import ModuleType

from pywebgpu.support.lazy import names as _names

_NAMES = {
    "continuous": ("Beta Chi2 ContinuousBernoulli Exponential FisherSnedecor Gamma InverseGamma StudentT VonMises"),
    "discrete": (
        "Bernoulli Binomial Categorical Geometric Multinomial NegativeBinomial OneHotCategorical "
        "OneHotCategoricalStraightThrough Poisson"
    ),
    "distribution": "Distribution ExponentialFamily Independent MixtureSameFamily",
    "elementwise_transforms": (
        "AbsTransform AffineTransform CumulativeDistributionTransform ExpTransform PowerTransform SigmoidTransform "
        "SoftplusTransform TanhTransform"
    ),
    "kl": "kl_divergence register_kl",
    "location_scale": "Cauchy GeneralizedPareto Gumbel HalfCauchy HalfNormal Laplace Normal Uniform",
    "multivariate": "Dirichlet LKJCholesky LowRankMultivariateNormal MultivariateNormal Wishart",
    "registry": "biject_to transform_to",
    "transformed": (
        "Kumaraswamy LogNormal LogisticNormal Pareto RelaxedBernoulli RelaxedOneHotCategorical TransformedDistribution "
        "Weibull"
    ),
    "transforms": (
        "CatTransform ComposeTransform IndependentTransform ReshapeTransform StackTransform Transform "
        "identity_transform"
    ),
    "vector_transforms": (
        "CorrCholeskyTransform LowerCholeskyTransform PositiveDefiniteTransform SoftmaxTransform StickBreakingTransform"
    ),
}


def _part(name: str) -> ModuleType | None:
    """A module: one of this folder, or one of PyTorch's, whose names stand here."""
    if name in ("constraints", "constraint_registry", "utils"):
        return import_module(f"pywebgpu.distributions.{'registry' if name == 'constraint_registry' else name}")
    if name.startswith("_"):
        return None
    return import_module("pywebgpu.torch_api.stand_ins").module(f"distributions.{name}")


__getattr__, __dir__, __all__ = _names(__name__, _NAMES, _part)
