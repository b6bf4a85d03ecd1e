"""torch.distributions: every class against PyTorch's, its draws against their own moments, divergences, transforms."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import distributions as theirs

import pywebgpu
from pywebgpu import distributions as ours
from pywebgpu.distributions import sampling

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns of its own parts when these are first used.
DRAWS = 4000


class Draw:
    """Parameters, the same each time."""

    def __init__(self) -> None:
        self.random = np.random.RandomState(0)

    def positive(self, *shape: int) -> np.ndarray:
        return (self.random.rand(*shape) * 2 + 0.5).astype("float32")

    def real(self, *shape: int) -> np.ndarray:
        return self.random.randn(*shape).astype("float32")

    def unit(self, *shape: int) -> np.ndarray:
        return (self.random.rand(*shape) * 0.8 + 0.1).astype("float32")

    def definite(self, n: int) -> np.ndarray:
        a = self.random.randn(n, n)
        return (a @ a.T + n * np.eye(n)).astype("float32")


def cases() -> dict[str, dict[str, Any]]:
    """Name of a class, and # with other parameters -> parameters."""
    d = Draw()
    positive, real, unit = d.positive, d.real, d.unit
    five, half = np.float32([5, 5, 5]), np.float32(0.7)
    located = ("Normal", "Laplace", "Cauchy", "Gumbel", "LogNormal", "LogisticNormal")
    return {name: {"loc": real(3), "scale": positive(3) / 2} for name in located} | {
        "HalfNormal": {"scale": positive(3)},
        "HalfCauchy": {"scale": positive(3)},
        "Uniform": {"low": real(3), "high": real(3) + 5},
        "Exponential": {"rate": positive(3)},
        "Gamma": {"concentration": positive(3), "rate": positive(3)},
        "Chi2": {"df": positive(3) * 3},
        "InverseGamma": {"concentration": positive(3) + 6, "rate": positive(3)},
        "Beta": {"concentration1": positive(3), "concentration0": positive(3)},
        "StudentT": {"df": positive(3) * 3 + 5, "loc": real(3), "scale": positive(3)},
        "FisherSnedecor": {"df1": positive(3) * 3, "df2": positive(3) + 14},
        "GeneralizedPareto": {"loc": real(3), "scale": positive(3), "concentration": positive(3) * 0.05},
        "VonMises": {"loc": real(3), "concentration": positive(3) * 3},
        "ContinuousBernoulli": {"probs": unit(3)},
        "ContinuousBernoulli#": {"logits": np.float32([-1.5, 0.5, 2])},  # Near 0 all digits cancel, as in PyTorch.
        "Bernoulli": {"probs": unit(3)},
        "Bernoulli#": {"logits": real(3)},
        "Geometric": {"probs": unit(3)},
        "Binomial": {"total_count": five, "probs": unit(3)},
        "NegativeBinomial": {"total_count": five, "probs": unit(3) / 2},
        "NegativeBinomial#": {"total_count": np.array([5, 3, 1]), "probs": unit(3) / 2},
        "Poisson": {"rate": np.float32([0.1, 5, 30])},
        "Categorical": {"probs": unit(3, 4)},
        "Categorical#": {"logits": real(3, 4)},
        "OneHotCategorical": {"logits": real(3, 4)},
        "OneHotCategoricalStraightThrough": {"logits": real(3, 4)},
        "Multinomial": {"total_count": 5, "probs": unit(3, 4)},
        "Dirichlet": {"concentration": positive(3, 4)},
        "MultivariateNormal": {"loc": real(2, 3), "covariance_matrix": d.definite(3)},
        "MultivariateNormal#": {"loc": real(3), "precision_matrix": d.definite(3)},
        "LowRankMultivariateNormal": {"loc": real(3), "cov_factor": real(3, 2), "cov_diag": positive(3)},
        "Wishart": {"df": np.float32(6), "covariance_matrix": d.definite(3)},
        "LKJCholesky": {"dim": 3, "concentration": np.float32(1.5)},
        "Kumaraswamy": {"concentration1": positive(3) + 1, "concentration0": positive(3) + 1},
        "Pareto": {"scale": positive(3), "alpha": positive(3) + 5},
        "Weibull": {"scale": positive(3), "concentration": positive(3) + 1},
        "RelaxedBernoulli": {"temperature": half, "probs": unit(3)},
        "RelaxedOneHotCategorical": {"temperature": half, "logits": real(3, 4)},
    }


CASES = cases()
OTHERS = {"Kumaraswamy": {"mode"}}  # PyTorch's formula is NaN.
QUANTITIES: dict[str, Any] = {
    "log_prob": lambda d, x, q: d.log_prob(x),
    "entropy": lambda d, x, q: d.entropy(),
    "mean": lambda d, x, q: d.mean,
    "mode": lambda d, x, q: d.mode,
    "variance": lambda d, x, q: d.variance,
    "stddev": lambda d, x, q: d.stddev,
    "cdf": lambda d, x, q: d.cdf(x),
    "icdf": lambda d, x, q: d.icdf(q),
    "enumerate_support": lambda d, x, q: d.enumerate_support() * 1.0,
    "expand": lambda d, x, q: d.expand((2, *d.batch_shape)).log_prob(x[:2]),
    "independent": lambda d, x, q: (ours if type(d).__module__.startswith("pywebgpu") else theirs)
    .Independent(d, len(d.batch_shape)).log_prob(x),
}  # fmt: skip


def tensors(library: Any, given: dict[str, Any]) -> dict[str, Any]:
    return {
        name: library.from_numpy(np.asarray(value)) if isinstance(value, np.ndarray | np.floating) else value
        for name, value in given.items()
    }


def made(library: Any, module: Any, name: str) -> Any:
    return getattr(module, name.rstrip("#"))(**tensors(library, CASES[name]))


def close(found: Any, wanted: Any, *, rtol: float = 3e-4) -> None:
    np.testing.assert_allclose(found.detach().cpu().numpy(), wanted.detach().numpy(), rtol=rtol, atol=3e-4)


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("name", CASES)
def test_densities_and_moments_match_torch(name: str, device: str, default_device: None) -> None:
    torch.manual_seed(0)
    own, other = made(pywebgpu, ours, name), made(torch, theirs, name)
    assert (tuple(own.batch_shape), tuple(own.event_shape)) == (tuple(other.batch_shape), tuple(other.event_shape))
    assert own.has_rsample == other.has_rsample
    x, q = other.sample((4,)), torch.from_numpy(Draw().unit(4, 3))
    compared = 0
    for quantity, value in QUANTITIES.items():
        try:
            wanted = value(other, x, q)
        except (NotImplementedError, AttributeError, RuntimeError):
            continue
        if quantity not in OTHERS.get(name, ()):
            close(value(own, pywebgpu.from_numpy(x.numpy()), pywebgpu.from_numpy(q.numpy())), wanted)
            compared += 1
    assert compared >= 3


@pytest.mark.one_in(4, webgpu=3)
@pytest.mark.parametrize("name", CASES)
def test_draws_are_distributed_as_they_say(name: str, device: str, default_device: None) -> None:
    pywebgpu.manual_seed(3)
    own, other = made(pywebgpu, ours, name), made(torch, theirs, name)
    torch.manual_seed(0)
    drawn, wanted = own.sample((DRAWS,)).cpu().numpy(), other.sample((DRAWS,)).numpy()
    assert drawn.shape == wanted.shape
    if "Cauchy" in name:
        drawn, wanted = (np.arctan(values) for values in (drawn, wanted))
    error = 6 * wanted.std(0) / np.sqrt(DRAWS) + 1e-3
    assert (abs(drawn.mean(0) - wanted.mean(0)) < 1.5 * error).all()
    np.testing.assert_allclose(drawn.std(0), wanted.std(0), rtol=0.25, atol=1e-3)
    pywebgpu.manual_seed(3)
    first, second = own.sample((DRAWS,)), own.sample((DRAWS,))
    assert not bool((first == second).all())


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("name", [name for name in CASES if made(torch, theirs, name).has_rsample])
def test_gradients_flow_through_draws(name: str, device: str, default_device: None) -> None:
    given = tensors(pywebgpu, CASES[name])
    leaves = [value.requires_grad_() for value in given.values() if pywebgpu.is_tensor(value)]
    getattr(ours, name.rstrip("#"))(**given).rsample((3,)).pow(2).sum().backward()
    assert any(leaf.grad is not None and leaf.grad.abs().sum() > 0 for leaf in leaves)


def test_shares_of_small_concentrations_lie_at_the_ends(device: str, default_device: None) -> None:
    if device == "null":
        pytest.skip("device null computes no values")
    pywebgpu.manual_seed(0)
    shares = ours.Beta(0.01, 0.01).sample((DRAWS,)), ours.Dirichlet(pywebgpu.full((2,), 0.01)).sample((DRAWS,))[:, 0]
    for share in shares:  # Between 0.1 and 0.9 lie 2.2 % of them.
        assert 0.01 < ((share - 0.5).abs() < 0.4).float().mean().item() < 0.035
        assert 0.45 < share.mean().item() < 0.55


def test_gradient_of_a_gamma_draw_is_torchs(device: str, default_device: None) -> None:
    a = torch.tensor(np.logspace(-1, 2.5, 40).astype("float32"))
    torch.manual_seed(0)
    z = torch._standard_gamma(a)
    found = sampling.gamma_derivative(pywebgpu.from_numpy(a.numpy()), pywebgpu.from_numpy(z.numpy()))
    close(found, torch._standard_gamma_grad(a, z), rtol=4e-3)


PAIRS = [(name, name) for name in CASES if not name.endswith("#")] + [("Chi2", "Gamma"), ("Poisson", "Normal")]
PAIRS += [
    (p.__name__, q.__name__) for p, q in theirs.kl._KL_REGISTRY
    if p is not q and p.__name__ in CASES and q.__name__ in CASES
]  # fmt: skip


@pytest.mark.one_in(webgpu=4)
@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_divergences_match_torch(pair: tuple[str, str], device: str, default_device: None) -> None:
    p, q = (getattr(theirs, name)(**tensors(torch, CASES[name])) for name in pair)
    own = [getattr(ours, name)(**tensors(pywebgpu, CASES[name])) for name in pair]
    try:
        wanted = theirs.kl_divergence(p, q)
    except NotImplementedError:
        with pytest.raises(NotImplementedError):
            ours.kl_divergence(*own)
        return
    close(ours.kl_divergence(*own), wanted, rtol=1e-3)


TRANSFORMS: dict[str, tuple[tuple[Any, ...], tuple[int, ...]]] = {
    "ExpTransform": ((), (3,)), "SigmoidTransform": ((), (3,)), "SoftplusTransform": ((), (3,)),
    "TanhTransform": ((), (3,)), "AffineTransform": ((1.0, 2.0), (3,)), "PowerTransform": ((2.0,), (3,)),
    "StickBreakingTransform": ((), (2, 3)), "LowerCholeskyTransform": ((), (2, 3, 3)),
    "CorrCholeskyTransform": ((), (2, 6)), "ReshapeTransform": (((2, 3), (6,)), (4, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_match_torch(name: str, device: str, default_device: None) -> None:
    arguments, shape = TRANSFORMS[name]
    x = Draw().unit(*shape)
    results = []
    for library, module in ((pywebgpu, ours), (torch, theirs)):
        given = tuple(library.tensor(a) if name == "PowerTransform" else a for a in arguments)
        transform = getattr(module, name)(*given)
        at = library.from_numpy(x)
        y = transform(at)
        determinant = [] if name == "LowerCholeskyTransform" else [transform.log_abs_det_jacobian(at, y)]
        results.append([y, transform.inv(y), *determinant])
    for own, other in zip(*results, strict=True):
        close(own, other)


def test_mixtures_and_composed_transforms_match_torch(device: str, default_device: None) -> None:
    d = Draw()
    weights, loc, scale, x = d.unit(4), d.real(4), d.positive(4), d.real(5)
    results = []
    for library, module in ((pywebgpu, ours), (torch, theirs)):
        w, m, s, at = map(library.from_numpy, (weights, loc, scale, x))
        mixture = module.MixtureSameFamily(module.Categorical(w), module.Normal(m, s))
        parts = [module.AffineTransform(1.0, 3.0), module.TanhTransform()]
        squashed = module.TransformedDistribution(module.Normal(m, s), parts)
        y = library.tanh(at[:4])
        results.append([mixture.log_prob(at), mixture.mean, mixture.variance, mixture.cdf(at), squashed.log_prob(y),
                        squashed.cdf(y)])  # fmt: skip
        assert tuple(mixture.sample((7,)).shape) == (7,)
    for own, other in zip(*results, strict=True):
        close(own, other)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, d: d.Normal(0.0, -1.0),
        lambda t, d: d.Categorical(),
        lambda t, d: d.Categorical(probs=t.tensor([-1.0, 2.0])),
        lambda t, d: d.Bernoulli(probs=2.0),
        lambda t, d: d.Uniform(1.0, 0.0),
        lambda t, d: d.Normal(0.0, 1.0).log_prob(3.0),
        lambda t, d: d.Exponential(1.0).log_prob(t.tensor(-1.0)),
        lambda t, d: d.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2)),
        lambda t, d: d.Normal("a", 1.0),
        lambda t, d: d.HalfCauchy(1.0).log_prob(3.0),
        lambda t, d: d.TransformedDistribution(d.Normal(0.0, 1.0), [lambda x: x]),
    ],
)
def test_wrong_parameters_are_refused_as_by_torch(wrong: Any) -> None:
    pywebgpu.set_default_device("cpu")
    for library, module in ((torch, theirs), (pywebgpu, ours)):
        with pytest.raises(ValueError, match=r"[a-z]"):
            wrong(library, module)


def test_registries_lead_into_each_set() -> None:
    pywebgpu.set_default_device("cpu")
    x = pywebgpu.tensor([-3.0, 0.5, 2.0])
    for constraint in (
        ours.constraints.positive, ours.constraints.unit_interval, ours.constraints.simplex, ours.constraints.real,
        ours.constraints.less_than(2.0), ours.constraints.interval(-1.0, 5.0), ours.constraints.real_vector,
    ):  # fmt: skip
        for registry in (ours.biject_to, ours.transform_to):
            assert bool(constraint.check(registry(constraint)(x)).all())


SEEN: dict[str, Any] = {
    "support of independent": lambda t, d: d.Independent(d.Normal(t.zeros(2), 1.0), 1).support,
    "support of a vector": lambda t, d: d.MultivariateNormal(t.zeros(2), t.eye(2)).support,
    "inverse": lambda t, d: d.ExpTransform().inv,
    "composed": lambda t, d: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0).inv]),
    "stacked": lambda t, d: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=-1).domain,
    "event_dim of a stack": lambda t, d: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=-1).event_dim,
    "cached both ways": lambda t, d: there_and_back(d.ComposeTransform([d.ExpTransform(), d.TanhTransform()]), t),
    "shape": lambda t, d: tuple(d.ReshapeTransform((3,), (3, 1)).forward_shape((5, 3))),
    "ends of a generalized Pareto": lambda t, d: d.GeneralizedPareto(0.0, t.tensor(1.0), t.tensor(-0.5)).support,
    "nearly symmetric": lambda t, d: d.constraints.positive_definite.check(t.tensor([[200.0, 100.001], [100.0, 300]])),
    "value is a number": lambda t, d: round(d.Gamma(2.0, 3.0).log_prob(0.5).item(), 4),
    "Wishart, expanded": lambda t, d: tuple(d.Wishart(6.0, t.eye(3)).expand((2,)).log_prob(t.eye(3)[None]).shape),
}


def kept(thing: Any, make: Any) -> str:
    """The name of the class of what is expanded, of a class derived from `thing`."""
    return type(make(type("Derived", (thing,), {})).expand((2,))).__name__


def divergences(t: Any, d: Any) -> Any:
    ends = [d.Bernoulli(0.0), d.Bernoulli(1.0), d.Bernoulli(0.25)]
    return [[round(d.kl_divergence(p, q).item(), 4) for p in ends] for q in ends]


SEEN |= {
    "inverse of the inverse": lambda t, d: (lambda e, c: (e.inv.inv is e, c.inv.inv is c, c.inv is c.inv))(
        d.ExpTransform(), d.ComposeTransform([d.ExpTransform(), d.TanhTransform()]).inv
    ),
    "parts of one event": lambda t, d: (
        lambda parts: tuple(d.CatTransform(parts, 1, [2, 2]).log_abs_det_jacobian(t.ones(5, 4), t.ones(5, 4)).shape)
    )([d.AffineTransform(0.0, t.full((2,), 2.0), event_dim=1)] * 2),
    "derived and expanded": lambda t, d: (
        kept(d.Independent, lambda kind: kind(d.Normal(t.zeros(2), 1.0), 1)),
        kept(d.MixtureSameFamily, lambda kind: kind(d.Categorical(t.ones(2)), d.Normal(t.zeros(2), 1.0))),
    ),
    "supports of classes": lambda t, d: [
        (kind.support.event_dim, kind.support.is_discrete) for kind in (d.Uniform, d.Pareto, d.Binomial, d.Categorical)
    ],
    "divergences at the ends": divergences,
    "inverse of a triangle": lambda t, d: (
        lambda m: t.linalg.solve_triangular(m.double(), t.eye(8).double(), upper=False).triu(1).any()
    )(t.tensor([[float((3 * i + 5 * j * j) % 11 + 1) ** ((i - j) % 4) for j in range(8)] for i in range(8)]).tril()),
    "a certain continuous coin": lambda t, d: round(d.ContinuousBernoulli(t.tensor([0.0])).entropy().item(), 4),
    "by the family": lambda t, d: round(
        d.kl._kl_expfamily_expfamily(d.ContinuousBernoulli(t.tensor(0.2)), d.ContinuousBernoulli(t.tensor(0.5))).item(),
        4,
    ),
    "probabilities nobody asked for": lambda t, d: (
        lambda one_hot, chosen: (
            (one_hot.enumerate_support().shape, chosen.enumerate_support().shape, chosen.mean.shape)
            and sorted({*vars(chosen), *vars(one_hot._categorical)} & {"probs"})
        )
    )(d.OneHotCategorical(logits=t.zeros(3)), d.Categorical(logits=t.zeros(3))),
}


def there_and_back(transform: Any, library: Any) -> bool:
    x, cached = library.tensor([0.5]), transform.with_cache()
    return cached.inv(cached(x)) is x


@pytest.mark.parametrize("name", SEEN)
def test_what_is_shown_is_what_torch_shows(name: str) -> None:
    pywebgpu.set_default_device("cpu")
    assert repr(SEEN[name](pywebgpu, ours)) == repr(SEEN[name](torch, theirs))


@pytest.mark.parametrize(
    "asked",
    [
        lambda t, d: d.Poisson(2.0).entropy(),
        lambda t, d: d.AbsTransform().sign,
        lambda t, d: d.TransformedDistribution(d.Normal(0.0, 1.0), d.AbsTransform()).cdf(t.tensor(1.0)),
        lambda t, d: d.Geometric(probs=t.tensor([0.0])),
        lambda t, d: d.CorrCholeskyTransform().forward_shape((4,)),
        lambda t, d: d.StickBreakingTransform().forward_shape(()),
        lambda t, d: d.ReshapeTransform((3,), (3, 1)).forward_shape((5, 4)),
        lambda t, d: d.Wishart(6.0, -t.eye(3)),
        lambda t, d: d.Bernoulli(0.5).log_prob(t.tensor(1)),
        lambda t, d: d.Independent.support.event_dim,
        lambda t, d: d.constraints.dependent.is_discrete,
        lambda t, d: d.Distribution((), (), validate_args=False).arg_constraints,
        lambda t, d: t.jit.trace(lambda x: d.Poisson(x).entropy(), (t.ones(2),)),
    ],
)
def test_what_torch_does_not_give_is_refused(asked: Any) -> None:
    pywebgpu.set_default_device("cpu")
    with pytest.raises((NotImplementedError, ValueError, RuntimeError)) as wanted:
        asked(torch, theirs)
    with pytest.raises(wanted.type):
        asked(pywebgpu, ours)


def test_a_class_that_says_nothing_of_its_values_warns() -> None:
    with pytest.warns(UserWarning, match="arg_constraints"):
        nothing = ours.Distribution(validate_args=True)
    with pytest.warns(UserWarning, match="support"):
        nothing._validate_sample(pywebgpu.zeros(2))


@pytest.mark.parametrize("make", ["bernoulli", "poisson", "normal"])
def test_draws_have_gradients_of_zero(make: str) -> None:
    chance = pywebgpu.full((3,), 0.5, requires_grad=True)
    drawn = pywebgpu.normal(chance, 1.0) if make == "normal" else getattr(pywebgpu, make)(chance)
    assert drawn.requires_grad
    assert pywebgpu.autograd.grad(drawn.sum(), chance)[0].tolist() == [0, 0, 0]
    with pywebgpu.autograd.forward_ad.dual_level():
        dual = pywebgpu.autograd.forward_ad.make_dual(chance.detach(), pywebgpu.ones(3))
        drawn = pywebgpu.normal(dual, 1.0) if make == "normal" else getattr(pywebgpu, make)(dual)
        assert pywebgpu.autograd.forward_ad.unpack_dual(drawn).tangent.tolist() == [0, 0, 0]


def test_shares_have_the_gradient_of_torchs() -> None:
    """torch's is approximated to some thousandths."""
    torch.manual_seed(0)
    concentration = torch.distributions.Gamma(1.0, 0.3).sample((500, 3)).double() + 0.05
    x = torch.distributions.Dirichlet(concentration).sample().clamp(1e-12, 1 - 1e-9)
    slopes = torch.randn_like(x)
    wanted = torch.distributions.dirichlet._Dirichlet_backward(x, concentration, slopes)
    parts = [pywebgpu.tensor(part.numpy(), device="cpu") for part in (x, concentration, slopes)]
    gradient = pywebgpu.distributions.sampling.dirichlet_gradient(*parts)
    torch.testing.assert_close(torch.from_numpy(gradient.numpy()), wanted, rtol=5e-3, atol=1e-3)
