"""What programs write of PyTorch's functions where it has none: rotary positions, filtered scores, low ranks, experts,
scans, audio, choices without branches."""

from typing import Any

from tests.cases.case import Case, Input, integers, randn, uniform

CASES: list[Case] = []


def add(name: str, fn: Any, *inputs: Input, **options: Any) -> None:
    CASES.append(Case(name, fn, inputs, **options))


# Attention


def rotary(torch: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Turns the first `2 * cos.shape[-1]` of the last axis, in halves, and no others. x (..., t, d), cos (t, n)."""
    n = cos.shape[-1]
    first, second, rest = x[..., :n], x[..., n : 2 * n], x[..., 2 * n :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def rotary_by_angles(torch: Any, x: Any, angles: Any) -> Any:
    return rotary(torch, x, angles.cos(), angles.sin())


add("rotary_whole", rotary_by_angles, randn(2, 3, 5, 8), randn(5, 4))
add("rotary_of_rows", rotary_by_angles, randn(5, 8), randn(5, 4))
add("rotary_partial", rotary_by_angles, randn(2, 3, 5, 8), randn(5, 2))


# Scores of the next token


def filtered(torch: Any, scores: Any, *, top_k: int = 0, top_p: float = 1.0, temperature: float = 1.0) -> Any:
    """The chances of the next token: those of the `top_k` best (0: all), of the fewest that have `top_p` together."""
    scores = scores / temperature
    if top_k:
        scores = scores.masked_fill(scores < scores.topk(top_k, -1).values[..., -1:], float("-inf"))
    best, order = scores.sort(-1, descending=True)
    chances = best.softmax(-1)
    outside = chances.cumsum(-1) - chances >= top_p
    kept = torch.zeros_like(chances).scatter(-1, order, chances.masked_fill(outside, 0.0))
    return kept / kept.sum(-1, keepdim=True)


FILTERS: dict[str, dict[str, Any]] = {
    "all": {},
    "top_k": {"top_k": 3},
    "top_p": {"top_p": 0.6},
    "cold": {"temperature": 0.1},
    "hot": {"temperature": 50.0},
    "together": {"top_k": 5, "top_p": 0.8, "temperature": 1.5},
}
for name, options in FILTERS.items():
    add(f"chances_{name}", lambda torch, x, options=options: filtered(torch, x, **options), randn(4, 11))


# Products


def low_rank(torch: Any, x: Any, weight: Any, down: Any, up: Any) -> Any:
    return x @ weight + 0.5 * ((x @ down) @ up)


def by_expert(torch: Any, x: Any, weights: Any, expert: Any) -> Any:
    """Each row of x (m, k) by the weights (e, k, n) of its expert."""
    return torch.bmm(x.unsqueeze(1), weights[expert]).squeeze(1)


def mixture(torch: Any, x: Any, gate: Any, weights: Any) -> Any:
    """The two experts that a gate likes best for each row, weighted."""
    share, expert = (x @ gate).softmax(-1).topk(2, -1)
    share = share / share.sum(-1, keepdim=True)
    out = torch.zeros(x.shape[0], weights.shape[-1], device=x.device)
    for number in range(weights.shape[0]):
        part = (share * (expert == number)).sum(-1, keepdim=True)
        out = out + part * torch.relu(x @ weights[number])
    return out


def limited_gate(torch: Any, scores: Any) -> Any:
    """Of four groups of experts the two whose best two are the best together; of these the three best experts."""
    groups = scores.sigmoid().unflatten(-1, (4, -1))
    best = groups.topk(2, -1).values.sum(-1).topk(2, -1).indices
    open_ = torch.zeros(groups.shape[:-1], device=scores.device).scatter(-1, best, 1.0).unsqueeze(-1)
    value, expert = (groups * open_).flatten(-2).topk(3, -1)
    return value / value.sum(-1, keepdim=True), expert


add("low_rank", low_rank, randn(7, 12), randn(12, 9), randn(12, 2), randn(2, 9), tolerance="contraction", terms=12)
add("by_expert", by_expert, randn(10, 6), randn(4, 6, 5), integers(10, low=0, high=4), tolerance="contraction", terms=6)
add("mixture", mixture, randn(10, 6), randn(6, 4), randn(4, 6, 5), tolerance="contraction", terms=6)
add("limited_gate", limited_gate, randn(5, 16))


# Scans


def selective_scan(torch: Any, x: Any, delta: Any, a: Any, b: Any, c: Any) -> Any:
    """x, delta (batch, t, h), a (h, n), b, c (batch, t, n): a state of n numbers a channel, which each step decays."""
    state = torch.zeros(x.shape[0], x.shape[2], a.shape[1], device=x.device)
    out = []
    for t in range(x.shape[1]):
        step = torch.nn.functional.softplus(delta[:, t]).unsqueeze(-1)
        state = (step * -a.exp()).exp() * state + step * b[:, t].unsqueeze(1) * x[:, t].unsqueeze(-1)
        out.append((state * c[:, t].unsqueeze(1)).sum(-1))
    return torch.stack(out, 1)


def delta_rule(torch: Any, q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any) -> Any:
    """q, k (batch, t, d), v (batch, t, e), g, beta (batch, t), state (batch, d, e) -> what is read, and the state."""
    out = []
    for t in range(q.shape[1]):
        key = k[:, t].unsqueeze(-1)
        state = state * torch.nn.functional.logsigmoid(g[:, t]).exp()[:, None, None]
        known = (state * key).sum(1)
        state = state + key * (beta[:, t].sigmoid().unsqueeze(-1) * (v[:, t] - known)).unsqueeze(1)
        out.append((state * q[:, t].unsqueeze(-1)).sum(1))
    return torch.stack(out, 1), state


def delta_rule_in_chunks(torch: Any, *args: Any) -> Any:
    *series, state = args
    first, state = delta_rule(torch, *[x[:, :2] for x in series], state)
    second, state = delta_rule(torch, *[x[:, 2:] for x in series], state)
    whole, _ = delta_rule(torch, *args)
    found = torch.cat([first, second], 1)
    return found, state, torch.allclose(found, whole, rtol=1e-5, atol=1e-6)


DELTA = (randn(2, 5, 3), uniform(2, 5, 3), randn(2, 5, 4), randn(2, 5), randn(2, 5), randn(2, 3, 4))
add(
    "selective_scan", selective_scan, randn(2, 6, 3), randn(2, 6, 3), randn(3, 4), randn(2, 6, 4), randn(2, 6, 4),
    tolerance="contraction", terms=24,
)  # fmt: skip
add("delta_rule", delta_rule, *DELTA, tolerance="contraction", terms=15)
add("delta_rule_in_chunks", delta_rule_in_chunks, *DELTA, tolerance="contraction", terms=15)


# Signals


def log_mel(torch: Any, signal: Any, filters: Any) -> Any:
    """signal (batch, samples), filters (bins, mels) -> (batch, frames, mels)."""
    window = torch.hann_window(16, device=signal.device)
    spectrum = torch.stft(signal, 16, 8, window=window, return_complex=True).abs().square()
    return (spectrum.transpose(1, 2) @ filters).clamp(min=1e-6).log10()


def then_convolved(torch: Any, signal: Any, filters: Any, kernel: Any) -> Any:
    return torch.nn.functional.conv1d(log_mel(torch, signal, filters).transpose(1, 2), kernel)


def welch_peaks(torch: Any, noise: Any) -> Any:
    """The two strongest frequencies of two tones in a little noise, by the mean power of segments that overlap."""
    at = torch.arange(256, dtype=torch.float32, device=noise.device)
    signal = (at * (6.283185307 * 10 / 64)).sin() + 0.6 * (at * (6.283185307 * 23 / 64)).sin() + 0.01 * noise
    segments = signal.unfold(0, 64, 32) * torch.hann_window(64, device=noise.device)
    power = torch.fft.rfft(segments).abs().square().mean(0)
    inner = power[1:-1]
    is_peak = (inner > power[:-2]) & (inner > power[2:])
    return (inner * is_peak).topk(2).indices + 1


def nearest(torch: Any, points: Any) -> Any:
    """Of each point the five that are nearest to it, by a matrix of distances."""
    distances = torch.cdist(points, points)
    return distances.topk(6, -1, largest=False).indices[:, 1:]


add("log_mel", log_mel, randn(2, 64), uniform(9, 5, low=0.1), tolerance="contraction", terms=144)
add("log_mel_then_conv", then_convolved, randn(2, 64), uniform(9, 5, low=0.1), randn(3, 5, 3),
    tolerance="contraction", terms=144)  # fmt: skip
add("welch_peaks", welch_peaks, randn(256, grad=False), grad=False)
add("nearest_of_50", nearest, randn(50, 3, grad=False), grad=False)


# Choices


def chosen(torch: Any, condition: Any, x: Any) -> Any:
    """Both branches are computed, and one is taken."""
    return torch.where(condition, x.exp(), x.square() - 1)


def halved(torch: Any, x: Any) -> Any:
    """At most 20 halvings of what is above 1, each element as often as it needs."""
    for _ in range(20):
        x = torch.where(x.abs() > 1, x / 2, x)
    return x


add("both_branches", lambda torch, x: chosen(torch, x.sum() > 0, x), randn(3, 4))
add("neither_branch", lambda torch, x: chosen(torch, x.sum() > 1e6, x), randn(3, 4))
add("halved_while_large", halved, uniform(3, 5, low=-1000.0, high=1000.0))
