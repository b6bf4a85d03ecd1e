"""A diffusion model of points in the plane: noise is predicted at every level, with an average of the weights."""

import copy
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from seeding import fill, normal

device = "cuda" if torch.cuda.is_available() else "cpu"


def timestep_embedding(t, dim, max_period=10000):
    half = dim // 2
    freqs = torch.exp(-math.log(max_period) * torch.arange(0, half, dtype=torch.float32) / half).to(t.device)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, hidden=48, emb=16):
        super().__init__()
        self.emb = emb
        self.time = nn.Sequential(nn.Linear(emb, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.inp = nn.Linear(2, hidden)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.GroupNorm(4, hidden), nn.SiLU(), nn.Linear(hidden, hidden)) for _ in range(2)
        )
        self.out = nn.Linear(hidden, 2)

    def forward(self, x, t):
        h = self.inp(x)
        e = self.time(timestep_embedding(t, self.emb))
        for block in self.blocks:
            h = h + block(h + e)
        return self.out(h)


T = 50
betas = torch.linspace(1e-4, 0.02, T, device=device)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
sqrt_ac, sqrt_om = alphas_cumprod.sqrt(), (1 - alphas_cumprod).sqrt()


def extract(a, t, shape):
    return a.gather(-1, t).reshape(t.shape[0], *((1,) * (len(shape) - 1)))


def q_sample(x, t, noise):
    return extract(sqrt_ac, t, x.shape) * x + extract(sqrt_om, t, x.shape) * noise


angle = torch.linspace(0, 2 * math.pi, 65)[:-1]
data = torch.stack([angle.cos(), angle.sin()], dim=1).to(device)
model = Denoiser().to(device)
fill(model, scale=0.2)
ema = copy.deepcopy(model).eval().requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(int(os.environ.get("STEPS", 12))):
    t = (torch.arange(64) * 7 + step * 13).remainder(T).to(device)
    noise = normal(64, 2, seed=step).to(device)
    loss = F.mse_loss(model(q_sample(data, t, noise), t), noise)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), model.parameters()):
            p.lerp_(q, 0.1)
    print(f"{step}: {loss:.5f}")


@torch.no_grad()
def sample(model, n):
    x = normal(n, 2, seed=77).to(device)
    for i in reversed(range(0, T, 10)):
        t = torch.full((n,), i, device=device, dtype=torch.long)
        eps = model(x, t)
        mean = (x - betas[i] / sqrt_om[i] * eps) / alphas[i].sqrt()
        x = mean + (betas[i].sqrt() * normal(n, 2, seed=i).to(device) if i > 0 else 0)
    return x


print("std", " ".join(f"{v:.4f}" for v in sample(ema, 32).std(dim=0).tolist()))
