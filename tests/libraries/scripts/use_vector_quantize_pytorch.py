"""Codes of vectors."""

import torch
from seeding import normal
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize

print("imported")

x = normal(2, 10, 8)
quantize = VectorQuantize(dim=8, codebook_size=16, decay=0.8, commitment_weight=1.0)
with torch.no_grad():
    quantize._codebook.embed.copy_(normal(1, 16, 8, seed=1))
    quantize._codebook.embed_avg.copy_(quantize._codebook.embed)
leaf = x.clone().requires_grad_()
out, indices, loss = quantize(leaf)
(out.pow(2).mean() + loss.sum()).backward()
print(tuple(out.shape), indices[0].tolist(), f"{loss.item():.4f} {leaf.grad.abs().sum().item():.4f}", flush=True)
out, indices = FSQ([4, 5, 3])(normal(2, 6, 3))
print(tuple(out.shape), indices[0].tolist(), f"{out.sum().item():.4f}", flush=True)
out, indices, loss = LFQ(codebook_size=16, dim=4)(normal(2, 6, 4))
print(tuple(out.shape), indices[0].tolist(), f"{loss.item():.4f}", flush=True)
residual = ResidualVQ(dim=8, num_quantizers=2, codebook_size=8)
out, indices, losses = residual(x)
print(tuple(out.shape), tuple(indices.shape), tuple(losses.shape), bool(losses.isfinite().all()))
