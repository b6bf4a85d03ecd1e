"""Images: filters, colours, geometry and augmentations that gradients go through."""

import kornia
import torch
from seeding import normal

print("imported")

image = normal(2, 3, 16, 16).sigmoid()
results = {
    "gray": kornia.color.rgb_to_grayscale(image),
    "hsv": kornia.color.rgb_to_hsv(image),
    "lab": kornia.color.rgb_to_lab(image),
    "blur": kornia.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)),
    "sobel": kornia.filters.sobel(image),
    "median": kornia.filters.median_blur(image, (3, 3)),
    "rotated": kornia.geometry.rotate(image, torch.tensor([30.0, 60.0])),
    "resized": kornia.geometry.resize(image, (8, 8)),
    "warped": kornia.geometry.warp_perspective(image, torch.eye(3).repeat(2, 1, 1) + 0.01, (16, 16)),
    "equalized": kornia.enhance.adjust_contrast(image, 0.7),
    "dilated": kornia.morphology.dilation(image, torch.ones(3, 3)),
    "harris": kornia.feature.harris_response(kornia.color.rgb_to_grayscale(image)),
}
for name, value in results.items():
    print(name, tuple(value.shape), f"{value.mean().item():.4f} {value.std().item():.4f}", flush=True)
leaf = image.clone().requires_grad_()
loss = kornia.losses.ssim_loss(leaf, image.flip(-1), 5) + kornia.losses.total_variation(leaf).mean()
loss.backward()
print(f"{loss.item():.4f} {leaf.grad.abs().sum().item():.4f}", flush=True)
points = kornia.geometry.transform_points(torch.eye(3)[None], normal(1, 4, 2))
print(
    tuple(points.shape),
    f"{kornia.geometry.conversions.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]])).sum().item():.4f}",
)
augment = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomHorizontalFlip(p=1.0), kornia.augmentation.Normalize(0.5, 0.5)
)
print(torch.allclose(augment(image), (image.flip(-1) - 0.5) / 0.5, atol=1e-5))
