"""Sparse relatives of softmax."""

import torch
from entmax import SparsemaxLoss, entmax15, entmax_bisect, sparsemax
from entmax.losses import Entmax15Loss
from seeding import fill, normal

print("imported")

x = normal(6, 9).requires_grad_()
for function in (sparsemax, entmax15, lambda z: entmax_bisect(z, 1.3)):
    y = function(x)
    (y * torch.arange(9.0)).sum().backward()
    print(f"{y.max().item():.4f} {(y == 0).sum().item()} {x.grad.abs().sum().item():.4f}", flush=True)
    x.grad = None
model = torch.nn.Linear(9, 5)
fill(model, scale=0.3)
for loss_function in (SparsemaxLoss(), Entmax15Loss()):
    loss = loss_function(model(x.detach()), torch.arange(6) % 5)
    loss.backward()
    print(f"{loss.item():.4f} {model.weight.grad.abs().sum().item():.4f}")
