"""A temporal convolutional network with weight normalisation, on the adding problem."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from seeding import normal
from torch.nn.utils import weight_norm


class Chomp1d(nn.Module):
    def __init__(self, chomp_size):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x):
        return x[:, :, : -self.chomp_size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, n_inputs, n_outputs, kernel_size, stride, dilation, padding, dropout=0.0):
        super().__init__()
        self.conv1 = weight_norm(
            nn.Conv1d(n_inputs, n_outputs, kernel_size, stride=stride, padding=padding, dilation=dilation)
        )
        self.chomp1, self.relu1, self.dropout1 = Chomp1d(padding), nn.ReLU(), nn.Dropout(dropout)
        self.conv2 = weight_norm(
            nn.Conv1d(n_outputs, n_outputs, kernel_size, stride=stride, padding=padding, dilation=dilation)
        )
        self.chomp2, self.relu2, self.dropout2 = Chomp1d(padding), nn.ReLU(), nn.Dropout(dropout)
        self.net = nn.Sequential(
            self.conv1, self.chomp1, self.relu1, self.dropout1, self.conv2, self.chomp2, self.relu2, self.dropout2
        )
        self.downsample = nn.Conv1d(n_inputs, n_outputs, 1) if n_inputs != n_outputs else None
        self.relu = nn.ReLU()

    def forward(self, x):
        out = self.net(x)
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class TCN(nn.Module):
    def __init__(self, inputs, output, channels, kernel_size=3):
        super().__init__()
        layers = []
        for i, width in enumerate(channels):
            d, before = 2**i, inputs if i == 0 else channels[i - 1]
            layers += [TemporalBlock(before, width, kernel_size, stride=1, dilation=d, padding=(kernel_size - 1) * d)]
        self.tcn, self.linear = nn.Sequential(*layers), nn.Linear(channels[-1], output)

    def forward(self, x):
        return self.linear(self.tcn(x)[:, :, -1])


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = TCN(2, 1, [8, 8, 8])
with torch.no_grad():
    for at, (name, p) in enumerate(model.named_parameters()):
        if name.endswith("weight_g"):
            p.fill_(0.7)
        else:
            p.copy_(normal(*p.shape, seed=at) * (0.3 if p.dim() > 1 else 0.0))
model = model.to(device)
print(sorted(name for name, _ in model.named_parameters())[:4])
values = normal(16, 1, 30).abs()
marks = torch.zeros(16, 1, 30)
marks[torch.arange(16), 0, torch.arange(16) % 15] = 1.0
marks[torch.arange(16), 0, 15 + torch.arange(16) % 15] = 1.0
x, y = torch.cat([values, marks], 1).to(device), (values * marks).sum(2).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(int(os.environ.get("STEPS", 6))):
    model.train()
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    print(f"Train step {step}\tLoss: {loss.item():.5f}")
