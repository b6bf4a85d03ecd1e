"""Positions as rotations of queries and keys."""

from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from seeding import normal

print("imported")

q, k = normal(1, 2, 8, 16).requires_grad_(), normal(1, 2, 8, 16, seed=1)
rotary = RotaryEmbedding(dim=8)
out = rotary.rotate_queries_or_keys(q)
scores = (out @ rotary.rotate_queries_or_keys(k).mT).softmax(-1)
scores.pow(2).sum().backward()
print(f"{out.sum().item():.4f} {scores.std().item():.5f} {q.grad.abs().sum().item():.4f}")
xpos = RotaryEmbedding(dim=8, use_xpos=True)
a, b = xpos.rotate_queries_and_keys(q, k)
print(f"{a.std().item():.4f} {b.std().item():.4f}")
axial = RotaryEmbedding(dim=4, freqs_for="pixel", max_freq=16).get_axial_freqs(4, 2)
print(tuple(axial.shape), f"{apply_rotary_emb(axial.reshape(8, -1), k).sum().item():.4f}")
learned = RotaryEmbedding(dim=8, learned_freq=True)
learned.rotate_queries_or_keys(k).pow(3).sum().backward()
print(f"{learned.freqs.grad.abs().sum().item():.3f}")
