"""A neural differential equation, fitted through its solver and by the adjoint method."""

import torch
from seeding import fill
from torchdiffeq import odeint, odeint_adjoint

print("imported")


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
        fill(self.net, scale=0.3)

    def forward(self, t, y):
        return self.net(y**3)


start, times = torch.tensor([[2.0, 0.0]]), torch.linspace(0, 1, 5)
wanted = torch.stack([torch.stack([2 * torch.cos(times), 2 * torch.sin(times)], -1)], 1)
adaptive = {"dtype": torch.float64 if start.device.type == "cpu" else torch.float32}  # of times; a GPU has no float64
for solve, method in ((odeint, "rk4"), (odeint, "dopri5"), (odeint_adjoint, "dopri5"), (odeint_adjoint, "midpoint")):
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    for step in range(3):
        options = adaptive if method == "dopri5" else None
        loss = (solve(field, start, times, method=method, options=options) - wanted).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(solve.__name__, method, step, f"{loss.item():.4f}", flush=True)
