"""Image models, detection, operators over boxes, transforms."""

import torch
import torchvision
from seeding import fill, normal
from torchvision import models, ops
from torchvision.transforms import v2

print("imported")
torch.set_default_dtype(torch.float64)  # Deep nets with such weights show float32's rounding after one step.
images = normal(2, 3, 64, 64).double()


def steps(name, model, loss_of):
    fill(model, scale=0.2)
    for module in model.modules():
        if type(module).__name__ in ("Dropout", "StochasticDepth"):
            module.p = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.5f}")
    print(name, *losses, flush=True)


F = torch.nn.functional
for name in ("mobilenet_v3_small", "shufflenet_v2_x0_5"):
    steps(name, models.get_model(name, num_classes=5), lambda m: F.cross_entropy(m(images), torch.tensor([1, 3])))
steps(
    "vit_b_16",
    models.VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64),
    lambda m: F.cross_entropy(m(images), torch.tensor([1, 3])),
)
steps(
    "lraspp_mobilenet_v3_large",
    models.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=4),
    lambda m: F.cross_entropy(m(images)["out"], torch.ones(2, 64, 64, dtype=torch.long)),
)
features = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3, 4, 1))
features.out_channels = 16
anchors = models.detection.anchor_utils.AnchorGenerator(sizes=((16, 32),), aspect_ratios=((0.5, 1.0),))
detector = models.detection.FasterRCNN(
    features, num_classes=3, rpn_anchor_generator=anchors, min_size=64, max_size=64, box_batch_size_per_image=600,
    rpn_batch_size_per_image=600, box_roi_pool=ops.MultiScaleRoIAlign(["0"], 3, 2),
)  # fmt: skip
boxes = torch.tensor([[5.0, 5, 40, 50], [20, 10, 60, 60]])
targets = [{"boxes": boxes, "labels": torch.tensor([1, 2])} for _ in images]
steps("fasterrcnn", detector, lambda m: sum(m(list(images), targets).values()))
found = detector.eval()(list(images))
print([sorted(one) for one in found], [len(one["boxes"]) for one in found])

x = normal(2, 24, 12, 14).double().requires_grad_()
rois = torch.tensor([[0, 1.0, 2, 20, 18], [1, 3, 3, 25, 22], [0, 8, 1, 27, 9]])
pooled = (
    ops.roi_align(x, rois, (3, 4), 0.5, 2), ops.roi_align(x, rois, (3, 4), 0.5, aligned=True),
    ops.roi_pool(x, rois, (3, 4), 0.5), ops.ps_roi_align(x, rois, (3, 4), 0.5), ops.ps_roi_pool(x, rois, (3, 4), 0.4),
)  # fmt: skip
sum(part.square().sum() for part in pooled).backward()
print(*(f"{part.abs().sum().item():.5f}" for part in (*pooled, x.grad)))
offset = (normal(2, 18, 12, 14).double() * 2).requires_grad_()
weight = normal(8, 24, 3, 3).double().requires_grad_()
ops.deform_conv2d(x, offset, weight, padding=1).square().mean().backward()
print(*(f"{tensor.grad.abs().sum().item():.4f}" for tensor in (offset, weight)))
many = normal(50, 2).double().abs() * 20
many, scores = torch.cat([many, many + 5 + normal(50, 2).double().abs() * 20], 1), normal(50).double()
print(ops.nms(many, scores, 0.3).tolist(), f"{ops.generalized_box_iou(many[:5], many[5:9]).sum().item():.5f}")
picture = (normal(3, 20, 24).double().sigmoid() * 255).to(torch.uint8)
first = v2.ToDtype(torch.float64, scale=True)
change = v2.Compose([first, v2.Resize(16), v2.CenterCrop(12), v2.Normalize([0.5], [0.2])])
print(tuple(change(picture).shape), f"{change(picture).mean().item():.4f}", torchvision.ops.box_area(boxes).tolist())
