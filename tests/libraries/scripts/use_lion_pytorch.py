"""Lion, alone and with its options."""

import torch
from lion_pytorch import Lion
from seeding import fill, normal

print("imported")

x = normal(16, 6)
for options in ({}, {"decoupled_weight_decay": True}, {"betas": (0.8, 0.95)}):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    fill(model, scale=0.3)
    optimizer = Lion(model.parameters(), lr=1e-3, weight_decay=1e-2, **options)
    for step in range(4):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(options, f"{loss.item():.5f}", len(optimizer.state_dict()["state"]), flush=True)
