"""Fourier neural operators."""

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO
from seeding import normal

print("imported")

model = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
with torch.no_grad():
    for index, parameter in enumerate(model.parameters()):
        values = 0.2 * normal(2, parameter.numel(), seed=index)
        parameter.copy_((torch.complex(*values) if parameter.is_complex() else values[0]).view(parameter.shape))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = normal(2, 1, 16, 16), normal(2, 1, 16, 16, seed=99)
for loss_of in (LpLoss(d=2, p=2), H1Loss(d=2)):
    for _ in range(3):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.4f}", flush=True)
