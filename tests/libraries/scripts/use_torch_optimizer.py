"""A collection of optimizers."""

import torch
import torch_optimizer
from seeding import fill, normal

print("imported")

x = normal(16, 6)
for name in "AdaBound AdaMod AdaBelief Adahessian DiffGrad Lamb MADGRAD NovoGrad PID QHAdam QHM RAdam Ranger SGDW SWATS Yogi".split():
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    fill(model, scale=0.3)
    optimizer = getattr(torch_optimizer, name)(model.parameters(), lr=1e-2)
    if name == "Adahessian":  # It draws.
        continue
    for step in range(4):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f}", flush=True)
