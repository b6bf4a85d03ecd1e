"""Models of characters and words, as tutorials write them."""

import math
from typing import Any

from tests.loops.start import Loop, Step, fill, integers, numbers, text, weight

V = 27


def _batches(torch: Any, size: int, block: int, vocabulary: int = V) -> Any:
    data, source = torch.tensor(text(vocabulary=vocabulary)), numbers()

    def batch() -> tuple[Any, Any]:
        ix = source.integers(0, len(data) - block - 1, size).tolist()
        x = torch.stack([data[i : i + block] for i in ix])
        y = torch.stack([data[i + 1 : i + block + 1] for i in ix])
        return x, y

    return batch


def _trained(torch: Any, model: Any, batch: Any, optimizer: Any) -> Step:
    def step() -> float:
        x, y = batch()
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def bigram(torch: Any) -> Step:
    model = fill(torch, torch.nn.Embedding(65, 65))
    return _trained(torch, model, _batches(torch, 32, 8, 65), torch.optim.AdamW(model.parameters(), lr=1e-2))


def counted_bigram(torch: Any) -> Step:
    """One layer of 27 x 27 over one-hot characters; all data in each step."""
    data = text(1000)
    xs, ys = torch.tensor(data[:-1]), torch.tensor(data[1:])
    w, num = weight(torch, V, V), len(data) - 1

    def step() -> float:
        xenc = torch.nn.functional.one_hot(xs, num_classes=V).float()
        counts = (xenc @ w).exp()
        probs = counts / counts.sum(1, keepdims=True)
        loss = -probs[torch.arange(num), ys].log().mean() + 0.01 * (w**2).mean()
        w.grad = None
        loss.backward()
        w.data += -10 * w.grad
        return float(loss.item())

    return step


def character_mlp(torch: Any) -> Step:
    data, source = text(), numbers()
    xs = torch.tensor([data[i : i + 3] for i in range(len(data) - 3)])
    ys = torch.tensor(data[3:])
    c, w1, b1 = weight(torch, V, 10), weight(torch, 30, 200), weight(torch, 200)
    w2, b2 = weight(torch, 200, V), weight(torch, V)
    parameters = [c, w1, b1, w2, b2]

    def step() -> float:
        ix = torch.tensor(source.integers(0, xs.shape[0], (32,)))
        emb = c[xs[ix]]
        h = torch.tanh(emb.view(-1, 30) @ w1 + b1)
        logits = h @ w2 + b2
        loss = torch.nn.functional.cross_entropy(logits, ys[ix])
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        return float(loss.item())

    return step


def wavenet(torch: Any) -> Step:
    nn = torch.nn

    class FlattenConsecutive(nn.Module):
        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            x = x.view(b, t // 2, c * 2)
            return x.squeeze(1) if x.shape[1] == 1 else x

    class Norm(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.gamma, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
            self.register_buffer("running_mean", torch.zeros(dim))
            self.register_buffer("running_var", torch.ones(dim))

        def forward(self, x: Any) -> Any:
            dim = 0 if x.ndim == 2 else (0, 1)
            mean, var = x.mean(dim, keepdim=True), x.var(dim, keepdim=True)
            with torch.no_grad():
                self.running_mean = 0.9 * self.running_mean + 0.1 * mean.flatten()
                self.running_var = 0.9 * self.running_var + 0.1 * var.flatten()
            return self.gamma * (x - mean) / torch.sqrt(var + 1e-5) + self.bias

    def block(inputs: int, n: int) -> list[Any]:
        return [FlattenConsecutive(), nn.Linear(inputs * 2, n, bias=False), Norm(n), nn.Tanh()]

    layers = [*block(24, 68), *block(68, 68), *block(68, 68), nn.Linear(68, V)]
    model = fill(torch, nn.Sequential(nn.Embedding(V, 24), *layers))
    data, source = text(), numbers()
    xs, ys = torch.tensor([data[i : i + 8] for i in range(len(data) - 8)]), torch.tensor(data[8:])
    parameters = list(model.parameters())

    def step() -> float:
        ix = torch.tensor(source.integers(0, xs.shape[0], (32,)))
        loss = nn.functional.cross_entropy(model(xs[ix]), ys[ix])
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -0.1 * p.grad
        return float(loss.item())

    return step


def nano_gpt(torch: Any) -> Step:
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width: int, heads: int, size: int) -> None:
            super().__init__()
            self.ln1, self.ln2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("mask", torch.tril(torch.ones(size, size)).view(1, 1, size, size))
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def attend(self, x: Any) -> Any:
            b, t, c = x.size()
            parts = self.qkv(x).split(c, dim=2)
            q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in parts)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
            y = functional.softmax(att, dim=-1) @ v
            return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class Model(nn.Module):
        def __init__(self, width: int = 64, size: int = 32) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(65, width), nn.Embedding(size, width)
            self.h = nn.ModuleList([Block(width, 4, size) for _ in range(4)])
            self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, 65, bias=False)

        def forward(self, idx: Any) -> Any:
            x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
            for block in self.h:
                x = block(x)
            return self.head(self.ln(x))

    model = fill(torch, Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return _trained(torch, model, _batches(torch, 12, 32, 65), optimizer)


def lecture_gpt(torch: Any) -> Step:
    """A head a module, as in a well-known lecture, with dropout."""
    nn, functional = torch.nn, torch.nn.functional

    class Head(nn.Module):
        def __init__(self, width: int, size: int) -> None:
            super().__init__()
            self.key, self.query, self.value = (nn.Linear(32, width, bias=False) for _ in range(3))
            self.register_buffer("tril", torch.tril(torch.ones(size, size)))
            self.dropout = nn.Dropout(0.1)

        def forward(self, x: Any) -> Any:
            _, t, _ = x.shape
            k, q = self.key(x), self.query(x)
            wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
            wei = wei.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
            return self.dropout(functional.softmax(wei, dim=-1)) @ self.value(x)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList([Head(8, 16) for _ in range(4)])
            self.proj, self.dropout = nn.Linear(32, 32), nn.Dropout(0.1)
            self.ffwd = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 32), nn.Dropout(0.1))
            self.ln1, self.ln2 = nn.LayerNorm(32), nn.LayerNorm(32)

        def forward(self, x: Any) -> Any:
            y = self.ln1(x)
            x = x + self.dropout(self.proj(torch.cat([h(y) for h in self.heads], dim=-1)))
            return x + self.ffwd(self.ln2(x))

    model = nn.Sequential(nn.Embedding(65, 32), Block(), Block(), nn.LayerNorm(32), nn.Linear(32, 65))
    optimizer = torch.optim.AdamW(fill(torch, model).parameters(), lr=1e-3)
    return _trained(torch, model, _batches(torch, 16, 16, 65), optimizer)


def skip_gram(torch: Any) -> Step:
    """Word2vec with negative samples."""
    nn = torch.nn
    words, contexts = fill(torch, nn.Embedding(500, 64)), fill(torch, nn.Embedding(500, 64), seed=9)
    optimizer = torch.optim.Adam([*words.parameters(), *contexts.parameters()], lr=1e-3)
    centers, others = integers(torch, 500, 640), integers(torch, 500, 640, seed=6)
    negatives, source = integers(torch, 500, 640, 5, seed=7), numbers()

    def step() -> float:
        at = int(source.integers(0, 9)) * 64
        v, u = words(centers[at : at + 64]), contexts(others[at : at + 64])
        score = nn.functional.logsigmoid(torch.sum(v * u, dim=1))
        product = torch.bmm(contexts(negatives[at : at + 64]), v.unsqueeze(2)).squeeze()
        loss = -(score + torch.sum(nn.functional.logsigmoid(-product), dim=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


LOOPS = (
    Loop(bigram),
    Loop(counted_bigram),
    Loop(character_mlp),
    Loop(wavenet),
    Loop(nano_gpt),
    Loop(lecture_gpt, draws=True),
    Loop(skip_gram),
)
