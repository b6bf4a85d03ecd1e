"""A large collection of optimizers."""

import pytorch_optimizer
import torch
from seeding import fill, normal

print("imported")

x = normal(16, 6)
for (
    name
) in "Lion AdamP Adan Lamb DAdaptAdam Shampoo StableAdamW AdaBelief Prodigy LARS MADGRAD NovoGrad SophiaH".split():
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    fill(model, scale=0.3)
    optimizer = pytorch_optimizer.load_optimizer(name)(model.parameters(), lr=1e-2)
    if name == "SophiaH":  # It draws.
        continue
    for _ in range(4):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f}", flush=True)
for name in ("REXScheduler", "CosineAnnealingWarmupRestarts"):
    print(name, hasattr(pytorch_optimizer, name) or name.lower() in pytorch_optimizer.get_supported_lr_schedulers())
