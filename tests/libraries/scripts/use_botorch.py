"""Bayesian optimization: a surrogate, fitted, and what to try next."""

import warnings

import torch
from botorch.acquisition import ExpectedImprovement, LogExpectedImprovement, UpperConfidenceBound
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

print("imported")

warnings.simplefilter("ignore")
x = torch.linspace(0, 1, 12, dtype=torch.float64).reshape(6, 2)
y = (x - 0.4).pow(2).sum(-1, keepdim=True).neg()
model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
mll = ExactMarginalLogLikelihood(model.likelihood, model)
fit_gpytorch_mll(mll)
points = torch.tensor([[[0.2, 0.3]], [[0.5, 0.6]]], dtype=torch.float64)
posterior = model.posterior(points.squeeze(1))
print(
    [f"{value:.3f}" for value in posterior.mean.flatten().tolist()],
    [f"{value:.3f}" for value in posterior.variance.flatten().tolist()],
    flush=True,
)
for acquisition in (
    ExpectedImprovement(model, y.max()),
    LogExpectedImprovement(model, y.max()),
    UpperConfidenceBound(model, beta=0.1),
):
    print(type(acquisition).__name__, [f"{value:.3f}" for value in acquisition(points).tolist()], flush=True)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
start = torch.tensor([[[0.3, 0.5]], [[0.6, 0.2]]], dtype=torch.float64)
candidate, value = optimize_acqf(
    UpperConfidenceBound(model, beta=0.1), bounds, q=1, num_restarts=2, batch_initial_conditions=start
)
print([f"{part:.2f}" for part in candidate.flatten().tolist()], f"{value.item():.3f}")
