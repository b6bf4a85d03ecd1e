"""Image models: a training step and features of five families."""

import timm
import torch
from seeding import fill, normal

print("imported")
torch.set_default_dtype(torch.float64)  # Deep nets with such weights show float32's rounding after one step.
images = normal(2, 3, 64, 64).double()
NAMES = ("resnet10t", "mobilenetv3_small_050", "convnext_atto", "efficientnet_lite0", "regnetx_002")
for name in (*NAMES, "vit_tiny_patch16_224"):
    options = {"img_size": 64} if name.startswith("vit") else {}
    model = timm.create_model(name, num_classes=5, **options)
    fill(model, scale=0.2)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(model(images), torch.tensor([1, 3]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.5f}")
    with torch.no_grad():
        features = model.eval().forward_features(images)
    print(name, *losses, tuple(features.shape), f"{features.abs().mean().item():.5f}", flush=True)
print(len(timm.list_models()) > 500, timm.data.resolve_data_config({}, model=model)["interpolation"])
