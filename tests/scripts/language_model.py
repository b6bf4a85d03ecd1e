"""A character language model: a small transformer, trained by AdamW with a warm-up and clipped gradients."""

import argparse
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from seeding import fill
from torch.utils.data import DataLoader, Dataset

TEXT = "the quick brown fox jumps over the lazy dog. " * 12


class Characters(Dataset):
    def __init__(self, text, size):
        chars = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(chars)}
        self.data = torch.tensor([self.stoi[c] for c in text], dtype=torch.long)
        self.vocab_size, self.size = len(chars), size

    def __len__(self):
        return len(self.data) - self.size

    def __getitem__(self, i):
        chunk = self.data[i : i + self.size + 1]
        return chunk[:-1], chunk[1:]


class Attention(nn.Module):
    def __init__(self, width, heads, size):
        super().__init__()
        assert width % heads == 0
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.register_buffer("mask", torch.tril(torch.ones(size, size)).view(1, 1, size, size))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in self.qkv(x).split(c, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        return self.proj((att @ v).transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, size):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, size)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Model(nn.Module):
    def __init__(self, vocab, width=32, heads=4, size=16, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(size, width)
        self.blocks = nn.ModuleList([Block(width, heads, size) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x, targets=None):
        pos = torch.arange(0, x.size(1), dtype=torch.long, device=x.device)
        x = self.tokens(x) + self.positions(pos)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=int(os.environ.get("STEPS", 12)))
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = Characters(TEXT, 16)
    model = Model(data.vocab_size).to(device)
    fill(model)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
    model.train()
    for step, (x, y) in enumerate(DataLoader(data, batch_size=8, shuffle=False)):
        if step == args.steps:
            break
        _, loss = model(x.to(device), y.to(device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print(f"step {step} loss {loss.item():.5f} rate {schedule.get_last_lr()[0]:.5f}")
    model.eval()
    x = torch.zeros((1, 1), dtype=torch.long, device=device)
    with torch.no_grad():
        for _ in range(5):
            logits, _ = model(x[:, -16:])
            probs = F.softmax(logits[:, -1, :], dim=-1)
            top, choice = torch.topk(probs, k=1, dim=-1)
            x = torch.cat((x, choice), dim=1)
    print("top", f"{top.item():.4f}")


if __name__ == "__main__":
    main()
