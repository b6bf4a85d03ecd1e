"""A network for volumes, with losses, metrics and transforms."""

import numpy as np
import torch
from monai.data import DataLoader, Dataset, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss
from monai.metrics import DiceMetric
from monai.networks.nets import BasicUNet, UNet
from monai.transforms import AsDiscrete, Compose, EnsureChannelFirst, EnsureType, RandFlip, Resize, ScaleIntensity
from seeding import fill, normal

print("imported")

x = normal(1, 1, 16, 16)
labels = (x > 0).long()
net = UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1)
fill(net, scale=0.2)
loss_function = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(3):
    loss = loss_function(net(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}", flush=True)
net.eval()
print(
    f"{DiceLoss(to_onehot_y=True, softmax=True)(net(x), labels).item():.4f} {FocalLoss(to_onehot_y=True)(net(x), labels).item():.4f}"
)
post = Compose([EnsureType(), AsDiscrete(argmax=True, to_onehot=2)])
metric = DiceMetric(include_background=True)
metric(
    [post(part) for part in decollate_batch(net(x))],
    [AsDiscrete(to_onehot=2)(part) for part in decollate_batch(labels)],
)
print(f"{metric.aggregate().item():.4f}", flush=True)
with torch.no_grad():
    print(f"{sliding_window_inference(normal(1, 1, 20, 20), (16, 16), 1, net).std().item():.4f}")
transform = Compose(
    [EnsureChannelFirst(channel_dim="no_channel"), ScaleIntensity(), Resize((8, 8)), RandFlip(prob=0.0)]
)
data = Dataset([np.arange(256, dtype=np.float32).reshape(16, 16) * at for at in (1, 2)], transform)
for batch in DataLoader(data, batch_size=2):
    print(type(batch).__name__, tuple(batch.shape), f"{batch.mean().item():.4f}", flush=True)
volume = BasicUNet(spatial_dims=3, in_channels=1, out_channels=1, features=(2, 2, 4, 4, 4, 2))
fill(volume, scale=0.2)
volume.eval()
print(tuple(volume(normal(1, 1, 32, 32, 32)).shape))
