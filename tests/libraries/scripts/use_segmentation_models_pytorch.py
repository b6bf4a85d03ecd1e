"""Nets that segment images, their losses and measures."""

import segmentation_models_pytorch as smp
import torch
from seeding import fill, normal

print("imported")
torch.set_default_dtype(torch.float64)  # Deep nets with such weights show float32's rounding after one step.

images = normal(2, 3, 32, 32).double()
masks = (images.mean(1, keepdim=True) > 0).double()
for kind, loss_of in (
    (smp.Unet, smp.losses.DiceLoss("binary")),
    (smp.FPN, smp.losses.FocalLoss("binary")),
    (smp.Linknet, smp.losses.JaccardLoss("binary")),
):
    model = fill(kind("resnet18", encoder_weights=None, in_channels=3, classes=1), scale=0.1).double()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout | torch.nn.Dropout2d):
            module.p = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(2):
        logits = model(images)
        loss = loss_of(logits, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(kind.__name__, f"{loss.item():.5f}", flush=True)
counts = smp.metrics.get_stats((logits.sigmoid() > 0.5).long(), masks.long(), mode="binary")
print([f"{getattr(smp.metrics, name)(*counts, reduction='micro').item():.4f}" for name in ("iou_score", "f1_score")])
