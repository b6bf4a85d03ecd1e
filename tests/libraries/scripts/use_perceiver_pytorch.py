"""Perceivers of images and of any output."""

import torch
from perceiver_pytorch import Perceiver, PerceiverIO
from seeding import fill, normal

print("imported")

latents = {"num_latents": 4, "latent_dim": 16, "cross_heads": 1, "latent_heads": 2, "latent_dim_head": 8}
model = Perceiver(
    input_channels=3, num_freq_bands=2, max_freq=4.0, depth=2, num_classes=3, cross_dim_head=8, weight_tie_layers=True,
    self_per_cross_attn=1, **latents,
)  # fmt: skip
fill(model, scale=0.2)
with torch.no_grad():
    model.latents.copy_(normal(*model.latents.shape) * 0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images, labels = normal(2, 6, 6, 3), torch.tensor([0, 2])
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
general = fill(PerceiverIO(dim=8, queries_dim=8, logits_dim=5, depth=1, cross_dim_head=8, **latents), scale=0.2)
print(f"{general(normal(1, 10, 8), queries=normal(3, 8, seed=1)).sum().item():.4f}")
