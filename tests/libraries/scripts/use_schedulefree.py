"""Optimizers without schedules."""

import torch
from schedulefree import AdamWScheduleFree, RAdamScheduleFree, SGDScheduleFree
from seeding import fill, normal

print("imported")

x = normal(16, 6)
for kind, options in (
    (AdamWScheduleFree, {"warmup_steps": 2}),
    (SGDScheduleFree, {"lr": 0.1}),
    (RAdamScheduleFree, {}),
    (AdamWScheduleFree, {"foreach": False}),
):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    fill(model, scale=0.3)
    optimizer = kind(model.parameters(), **options)
    optimizer.train()
    for step in range(4):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.eval()
    print(kind.__name__, f"{loss.item():.5f} {model(x).mean().item():.5f}", flush=True)
