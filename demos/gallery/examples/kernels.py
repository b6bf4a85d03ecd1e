"""Kernels: what a training step is compiled into, and what each kernel reads, writes and takes."""

import pywebgpu as torch
from pywebgpu import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
images, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))


def step():
    """Forward, backward and update: one submit to the GPU."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss


for n in range(5):
    print(f"step {n}: loss {step().item():.3f}")

# A table here; `torch.visualize(step)` makes a page of it, with the text of each kernel.
torch.explain(step)
