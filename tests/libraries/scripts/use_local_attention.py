"""Attention within windows."""

import torch
from local_attention import LocalAttention, LocalTransformer
from seeding import fill, normal

print("imported")

q, k, v = (normal(1, 2, 16, 8, seed=seed).requires_grad_() for seed in range(3))
for options in ({"causal": True}, {"look_backward": 1, "look_forward": 1}, {"causal": True, "exact_windowsize": True}):
    out = LocalAttention(dim=8, window_size=4, dropout=0.0, **options)(q, k, v)
    out.pow(2).sum().backward()
    print(sorted(options), f"{out.sum().item():.4f} {q.grad.abs().sum().item():.4f}", flush=True)
    q.grad = None
model = LocalTransformer(
    num_tokens=32, dim=16, depth=2, causal=True, local_attn_window_size=8, max_seq_len=16, heads=2, dim_head=8
)
fill(model)
ids = torch.arange(32).reshape(2, 16) * 3 % 32
loss = model(ids, return_loss=True)
loss.backward()
print(f"{loss.item():.4f}")
