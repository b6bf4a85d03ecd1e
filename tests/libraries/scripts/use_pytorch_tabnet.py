"""A classifier of tables."""

import numpy as np
import torch
from pytorch_tabnet.tab_network import TabNet
from seeding import fill, normal

print("imported")

x, y = normal(32, 6), (normal(32, 6).sum(1) > 0).long()
model = TabNet(6, 2, n_d=4, n_a=4, n_steps=2, virtual_batch_size=16, group_attention_matrix=torch.eye(6))
fill(model, scale=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    out, sparsity = model(x)
    loss = torch.nn.functional.cross_entropy(out, y) - 1e-3 * sparsity
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f} {sparsity.item():.4f}", flush=True)
explained, masks = model.eval().forward_masks(x)
print(f"{explained.sum().item():.3f}", sorted(masks), np.round(masks[0].sum().item(), 3))
