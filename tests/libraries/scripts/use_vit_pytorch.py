"""Image transformers by their first pages."""

import torch
from seeding import fill, normal
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.deepvit import DeepViT

print("imported")

sizes = {"image_size": 16, "num_classes": 4, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}
models = {
    "vit": ViT(patch_size=8, **sizes),
    "simple": SimpleViT(patch_size=8, **sizes),
    "deep": DeepViT(patch_size=8, **sizes),
    "cait": CaiT(patch_size=8, cls_depth=1, **sizes),
    "cct": CCT(
        img_size=16, embedding_dim=16, n_conv_layers=1, num_layers=1, num_heads=2, num_classes=4, stochastic_depth=0.0
    ),
}
images, labels = normal(2, 3, 16, 16), torch.tensor([1, 3])
for name, model in models.items():
    fill(model, scale=0.2)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.4f}", flush=True)
