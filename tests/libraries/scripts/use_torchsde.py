"""Stochastic differential equations; without noise they are ordinary ones."""

import torch
import torchsde
from seeding import fill

print("imported")


class Equation(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self, noise):
        super().__init__()
        self.drift, self.noise = torch.nn.Linear(3, 3), noise
        fill(self.drift, scale=0.3)

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return self.noise * torch.ones_like(y)


start, times = torch.linspace(-1, 1, 12).reshape(4, 3), torch.linspace(0, 1, 4)
for noise in (0.0, 0.1):
    equation = Equation(noise)
    for solve in (torchsde.sdeint, torchsde.sdeint_adjoint):
        path = solve(equation, start, times, method="euler", dt=0.1)
        loss = path[-1].pow(2).mean()
        loss.backward()
        if noise == 0:
            print(solve.__name__, f"{loss.item():.5f} {equation.drift.weight.grad.abs().sum().item():.4f}", flush=True)
        else:
            print(solve.__name__, tuple(path.shape), bool(path.isfinite().all()))
        equation.zero_grad()
motion = torchsde.BrownianInterval(0.0, 1.0, size=(2, 3))
print(torch.allclose(motion(0.0, 1.0), motion(0.0, 0.4) + motion(0.4, 1.0), atol=1e-5))
