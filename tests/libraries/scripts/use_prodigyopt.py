"""An optimizer that finds its rate."""

import torch
from prodigyopt import Prodigy
from seeding import fill, normal

print("imported")

x = normal(16, 6)
for options in ({}, {"safeguard_warmup": True, "use_bias_correction": True}, {"decouple": False, "weight_decay": 0.01}):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    fill(model, scale=0.3)
    optimizer = Prodigy(model.parameters(), **options)
    for step in range(5):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(sorted(options), f"{loss.item():.5f}", flush=True)
