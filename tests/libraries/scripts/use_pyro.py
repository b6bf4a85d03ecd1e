"""A Bayesian regression fitted by variational inference, and sampled."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO
from pyro.infer.autoguide import AutoDelta, AutoDiagonalNormal
from pyro.optim import Adam
from seeding import normal

print("imported")

pyro.set_rng_seed(0)
x = torch.linspace(-1, 1, 20)
y = 0.5 + 2 * x + 0.1 * normal(20)


def model(x, y=None):
    a = pyro.sample("a", dist.Normal(0.0, 1.0))
    b = pyro.sample("b", dist.Normal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(a + b * x, 0.1), obs=y)


guide = AutoDelta(model)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
pyro.clear_param_store()
guide._setup_prototype(x, y)
for value in guide.parameters():
    with torch.no_grad():
        value.zero_()
losses = [svi.step(x, y) for _ in range(200)]
print(
    [f"{loss:.3f}" for loss in losses[1::60]],
    {name: f"{value.item():.4f}" for name, value in guide.median().items()},
    flush=True,
)
pyro.clear_param_store()
guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, Adam({"lr": 0.05}), Trace_ELBO())
for _ in range(300):
    loss = svi.step(x, y)
print({name: f"{value.item():.1f}" for name, value in guide.median().items()}, loss < 100, flush=True)
print(Predictive(model, guide=guide, num_samples=5)(x)["y"].shape, flush=True)
trace = pyro.poutine.trace(pyro.poutine.condition(model, {"a": torch.tensor(0.5), "b": torch.tensor(2.0)})).get_trace(
    x, y
)
print(f"{trace.log_prob_sum().item():.4f}")


@pyro.infer.config_enumerate
def mixture(data):
    weights = pyro.param("weights", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
    means = pyro.param("means", torch.tensor([-1.0, 1.0]))
    with pyro.plate("data", len(data)):
        z = pyro.sample("z", dist.Categorical(weights))
        pyro.sample("obs", dist.Normal(means[z], 1.0), obs=data)


pyro.clear_param_store()
svi = SVI(mixture, lambda data: None, Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=1))
print(
    [f"{svi.step(y):.4f}" for _ in range(4)], [f"{value:.4f}" for value in pyro.param("weights").tolist()], flush=True
)
mcmc = MCMC(NUTS(model), num_samples=20, warmup_steps=20, disable_progbar=True)
mcmc.run(x, y)
print({name: f"{value.mean().item():.0f}" for name, value in mcmc.get_samples().items() if name == "b"})
