"""Similarity of images as a loss."""

from pytorch_msssim import SSIM, ms_ssim, ssim
from seeding import normal

print("imported")

image = normal(2, 3, 48, 48).sigmoid().requires_grad_()
other = normal(2, 3, 48, 48, seed=1).sigmoid()
loss = 1 - ssim(image, other, data_range=1.0)
loss.backward()
print(f"{loss.item():.5f} {image.grad.abs().sum().item():.4f}")
print(f"{SSIM(data_range=1.0, nonnegative_ssim=True)(image, other).item():.5f}")
large = normal(1, 1, 176, 176).sigmoid()
print(f"{ms_ssim(large, large + 0.05 * normal(1, 1, 176, 176, seed=2), data_range=1.2).item():.5f}")
