"""Vision transformers."""

import torch
from seeding import fill, normal
from vit_pytorch import SimpleViT, ViT

print("imported")

images, labels = normal(2, 3, 16, 16), torch.tensor([1, 3])
sizes = dict(image_size=16, patch_size=4, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32)
for kind in (ViT, SimpleViT):
    model = kind(**sizes)
    fill(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, step, f"{loss.item():.5f}", flush=True)
