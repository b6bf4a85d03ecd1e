"""A program as PyTorch's users write it. A type checker finds nothing wrong with it."""

import pywebgpu as torch
import pywebgpu.nn.functional as F
from pywebgpu import nn
from pywebgpu.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(heads))
        self.register_buffer("mask", torch.ones(8, 8, dtype=torch.bool).tril())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) * self.scale.view(-1, 1, 1) / width**0.5
        weights = F.softmax(scores.masked_fill(~self.mask, float("-inf")), dim=-1)
        mixed: torch.Tensor = (weights @ value).transpose(1, 2).reshape(batch, length, width)
        return x + F.dropout(self.out(mixed), 0.1, training=self.training)


def train(device: torch.device) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(Attention(16, 2), nn.Flatten(), nn.Linear(128, 4)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    inputs, targets = torch.randn(32, 8, 16), torch.randint(0, 4, (32,))
    losses: list[float] = []
    for x, y in DataLoader(TensorDataset(inputs, targets), batch_size=8, shuffle=True):
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    return losses


@torch.no_grad()
def accuracy(scores: torch.Tensor, targets: torch.Tensor) -> float:
    values, places = scores.max(dim=1)
    best = torch.argmax(scores, dim=-1)
    assert torch.equal(best, places)
    top = torch.topk(scores, 2).indices
    rows = torch.cat([best.unsqueeze(1), top], dim=1)[:, :1].squeeze(1)
    high = torch.where(values > 0, values, torch.zeros_like(values)).sum().item()
    return (rows == targets).float().mean().item() + 0 * high


def sizes(x: torch.Tensor) -> tuple[int, int, torch.Size]:
    first: int = x.shape[0]
    if x.grad is not None:
        x.grad.zero_()
    x.add_(1).mul_(2.0)
    y = 2 * x + 1 - x / 3
    y[:, 0] = 0
    z: torch.Tensor = torch.exp(-(y**2)) * torch.pow(2, x)
    return first, z.size(-1), z.size()


if __name__ == "__main__":
    where = torch.device("webgpu" if torch.webgpu.is_available() else "cpu")
    print(train(where), sizes(torch.zeros(2, 3)), accuracy(torch.eye(3), torch.arange(3)))
