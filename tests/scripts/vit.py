"""A vision transformer on patches of made-up pictures."""

import os

import torch
from seeding import fill, normal
from torch import nn


class PatchEmbedding(nn.Module):
    def __init__(self, channels=3, patch=4, width=32, size=16):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, width))
        nn.init.trunc_normal_(self.pos_embed, std=0.02)

    def forward(self, x):
        x = self.proj(x).flatten(2).transpose(1, 2)
        cls = self.cls_token.expand(x.shape[0], -1, -1)
        return torch.cat([cls, x], dim=1) + self.pos_embed


class ViT(nn.Module):
    def __init__(self, classes=4, width=32, depth=2, heads=4):
        super().__init__()
        self.patches = PatchEmbedding(width=width)
        layer = nn.TransformerEncoderLayer(
            d_model=width,
            nhead=heads,
            dim_feedforward=64,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, num_layers=depth, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, classes)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)
        elif isinstance(m, (nn.LayerNorm, nn.BatchNorm2d)):
            nn.init.constant_(m.weight, 1.0)

    def forward(self, x):
        return self.head(self.encoder(self.patches(x))[:, 0])


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = ViT().to(device)
fill(model)
print("parameters:", sum(p.numel() for p in model.parameters() if p.requires_grad))
x, y = normal(16, 3, 16, 16).to(device), (torch.arange(16) % 4).to(device)
x[y == 1] += 0.5
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = int(os.environ.get("STEPS", 8))
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
scaler = torch.amp.GradScaler(device.type, enabled=False)
for epoch in range(steps):
    model.train()
    with torch.autocast(device_type=device.type, enabled=False):
        out = model(x)
        loss = criterion(out, y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    correct = (out.argmax(dim=1) == y).sum().item()
    print(f"Epoch [{epoch + 1}/{steps}] loss: {loss.item():.5f} acc: {correct / len(y):.3f}")
model.eval()
with torch.inference_mode():
    print("eval %.5f" % criterion(model(x), y).item())
