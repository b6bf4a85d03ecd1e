"""Gaussian processes: exact, and by variational inference."""

import gpytorch
import torch
from seeding import normal

print("imported")

x = torch.linspace(0, 1, 30)
y = torch.sin(6 * x) + 0.1 * normal(30)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.covariance = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=1.5)
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
model.train(), likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for step in range(6):
    optimizer.zero_grad()
    loss = -mll(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f} {likelihood.noise.item():.4f}", flush=True)
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    prediction = likelihood(model(torch.linspace(0, 1.2, 7)))
    print(
        [f"{value:.3f}" for value in prediction.mean.tolist()],
        [f"{value:.3f}" for value in prediction.variance.tolist()],
        flush=True,
    )
    lower, upper = prediction.confidence_region()
    print(bool((lower < upper).all()))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(
            gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=True)
        )
        self.mean, self.covariance = (
            gpytorch.means.ZeroMean(),
            gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()),
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.covariance(x))


gpytorch.settings.linalg_dtypes(torch.float32).__enter__()  # Variational factors are float64 where nobody says so.
model, likelihood = Variational(x[::5]), gpytorch.likelihoods.BernoulliLikelihood()
labels = (y > 0).float()
with torch.no_grad():
    distribution = model.variational_strategy._variational_distribution
    distribution.variational_mean.copy_(torch.linspace(-0.1, 0.1, 6))
    model.variational_strategy.variational_params_initialized.fill_(1)
mll = gpytorch.mlls.VariationalELBO(likelihood, model, labels.numel())
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for step in range(4):
    optimizer.zero_grad()
    loss = -mll(model(x), labels)
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}", flush=True)
