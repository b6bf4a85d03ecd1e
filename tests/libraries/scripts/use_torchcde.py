import torch
import torchcde
from seeding import fill

print("imported")

times = torch.linspace(0, 1, 6)
path = torch.stack([torch.sin(times), torch.cos(3 * times), times], -1)[None]
spline = torchcde.CubicSpline(torchcde.hermite_cubic_coefficients_with_backward_differences(path))


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 12)

    def forward(self, t, z):
        return self.layer(z).tanh().view(1, 4, 3)


field = fill(Field())
z = torchcde.cdeint(
    X=spline,
    func=field,
    z0=torch.ones(1, 4),
    t=spline.interval,
    adjoint=False,
    method="rk4",
    options={"step_size": 0.25},
)
z[:, -1].sum().backward()
print(f"{z.sum().item():.5f} {field.layer.weight.grad.sum().item():.4f}")
