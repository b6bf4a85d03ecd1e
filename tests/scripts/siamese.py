"""A siamese network: pairs of pictures by a contrastive loss, then triplets and a cosine loss."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from seeding import fill, normal
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, count=24):
        self.images = normal(count, 1, 12, 12)
        self.labels = [i % 3 for i in range(count)]
        for i, label in enumerate(self.labels):
            self.images[i, :, label * 4 : label * 4 + 4] += 2.0

    def __getitem__(self, index):
        other = (index * 5 + 1) % len(self.images)
        target = torch.tensor(float(self.labels[index] != self.labels[other]))
        return self.images[index], self.images[other], target

    def __len__(self):
        return len(self.images)


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(1, 4, kernel_size=3), nn.ReLU(inplace=True), nn.BatchNorm2d(4),
            nn.Conv2d(4, 8, 3, stride=2), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((3, 3)),
        )  # fmt: skip
        self.fc = nn.Sequential(nn.Linear(72, 16), nn.ReLU(inplace=True), nn.Linear(16, 4))

    def forward_once(self, x):
        output = self.cnn(x)
        return self.fc(output.view(output.size()[0], -1))

    def forward(self, one, two):
        return self.forward_once(one), self.forward_once(two)


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, one, two, label):
        distance = F.pairwise_distance(one, two, keepdim=True)
        label = label.view(-1, 1)
        near = (1 - label) * torch.pow(distance, 2)
        return torch.mean(near + label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = SiameseNetwork().to(device)
fill(net, scale=0.2)
for name, p in net.named_parameters():
    if name.endswith("bias"):
        nn.init.zeros_(p)
criterion, triplet, cosine = ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0), nn.CosineEmbeddingLoss(margin=0.2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1)
loader = DataLoader(Pairs(), batch_size=8, shuffle=False, num_workers=0, drop_last=True)
for epoch in range(int(os.environ.get("STEPS", 3))):
    total = 0.0
    for one, two, label in loader:
        one, two, label = one.to(device), two.to(device), label.to(device)
        optimizer.zero_grad()
        a, b = net(one, two)
        loss = criterion(a, b, label) + 0.1 * triplet(a, b, a.roll(1, 0)) + 0.1 * cosine(a, b, 1 - 2 * label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step(total)
    print("Epoch {} loss {:.4f} rate {:.4f}".format(epoch, total / len(loader), optimizer.param_groups[0]["lr"]))
net.eval()
with torch.no_grad():
    one, two, _ = next(iter(loader))
    print("distance", ["%.4f" % d for d in F.pairwise_distance(*net(one.to(device), two.to(device)))[:3].cpu().numpy()])
