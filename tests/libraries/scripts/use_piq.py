"""Measures of images' quality."""

import piq
from seeding import normal

print("imported")

x = normal(2, 3, 48, 48).sigmoid().requires_grad_()
y = (x.detach() + 0.1 * normal(2, 3, 48, 48, seed=1)).clamp(0, 1)
for name in ("psnr", "ssim", "gmsd", "haarpsi", "vif_p", "fsim", "vsi", "mdsi", "srsim"):
    print(name, f"{getattr(piq, name)(x.detach(), y).item():.4f}", flush=True)
loss = piq.SSIMLoss()(x, y) + piq.TVLoss()(x) * 1e-4
loss.backward()
print(f"{loss.item():.5f} {x.grad.abs().sum().item():.4f}")
