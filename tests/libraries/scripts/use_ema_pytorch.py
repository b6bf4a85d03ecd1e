"""A running average of a model."""

import torch
from ema_pytorch import EMA
from seeding import fill, normal

print("imported")

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
fill(model, scale=0.3)
ema = EMA(model, beta=0.9, update_after_step=1, update_every=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = normal(8, 4)
for step in range(5):
    loss = model(x).pow(3).mean() + model[0].weight.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update()
    print(step, f"{loss.item():.5f} {ema(x).abs().sum().item():.5f}", flush=True)
