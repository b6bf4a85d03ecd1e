"""Networks that segment images, by their losses and metrics."""

import segmentation_models_pytorch as smp
import torch
from seeding import fill, normal

print("imported")

x, mask = normal(2, 3, 32, 32), (normal(2, 1, 32, 32, seed=1) > 0).long()
for kind in (smp.Unet, smp.FPN, smp.Linknet):
    model = kind("resnet18", encoder_weights=None, classes=1)
    fill(model, scale=0.05)
    loss_function = smp.losses.DiceLoss("binary")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(2):
        loss = loss_function(model(x), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, step, f"{loss.item():.4f}", flush=True)
stats = smp.metrics.get_stats((normal(2, 1, 32, 32, seed=2) > 0).long(), mask, mode="binary")
print(f"{smp.metrics.iou_score(*stats, reduction='micro').item():.4f}")
