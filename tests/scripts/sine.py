"""A sine fitted with LBFGS, whose closure is called several times a step, as in PyTorch's time_sequence example."""

import math
import os

import torch
import torch.nn as nn
from seeding import fill

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 12)
        self.linear = nn.Linear(12, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 12, dtype=input.dtype, device=input.device)
        c_t = torch.zeros_like(h_t)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            output = self.linear(h_t)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            output = self.linear(h_t)
            outputs += [output]
        return torch.cat(outputs, dim=1)


t = torch.linspace(0, 4 * math.pi, 25).repeat(4, 1) + torch.arange(4.0).unsqueeze(1)
data = torch.sin(t).to(device)
input, target = data[:, :-1], data[:, 1:]
seq = Sequence().to(device)
fill(seq, scale=0.3)
for p in (p for name, p in seq.named_parameters() if "bias" in name):
    nn.init.zeros_(p)
criterion = nn.MSELoss()
optimizer = torch.optim.LBFGS(seq.parameters(), lr=0.5, max_iter=4)
for i in range(int(os.environ.get("STEPS", 3))):

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(input), target)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    print("STEP:", i, "loss: %.5f" % loss.item())
with torch.no_grad():
    print("test loss: %.4f" % criterion(seq(input, future=3)[:, :-3], target).item())
