"""Regressions, control, graphs, physics: loops whose arithmetic is next to nothing."""

from collections import deque
from itertools import pairwise
from typing import Any

from tests.loops.start import Loop, Step, fill, floats, integers, numbers, weight


def _mlp(torch: Any, *sizes: int, activation: str = "ReLU") -> Any:
    nn, layers = torch.nn, []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), getattr(nn, activation)()]
    return fill(torch, nn.Sequential(*layers[:-1]))


def _descends(loss: Any, optimizer: Any) -> float:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(loss.item())


def linear_regression(torch: Any) -> Step:
    model, x = fill(torch, torch.nn.Linear(1, 1)), floats(torch, 15, 1)
    y, criterion = 3 * x + 1, torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return lambda: _descends(criterion(model(x), y), optimizer)


def logistic_regression(torch: Any) -> Step:
    model, x, y = fill(torch, torch.nn.Linear(784, 10)), floats(torch, 100, 1, 28, 28), integers(torch, 10, 100)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    return lambda: _descends(torch.nn.functional.cross_entropy(model(x.reshape(-1, 784)), y), optimizer)


def polynomial(torch: Any) -> Step:
    """A sine by a polynomial of four numbers, moved by hand."""
    x = torch.linspace(-3.14159, 3.14159, 2000)
    y = torch.sin(x)
    a, b, c, d = (weight(torch, 1, seed=n) for n in range(4))

    def step() -> float:
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for p in (a, b, c, d):
                p -= 1e-6 * p.grad
                p.grad = None
        return float(loss.item())

    return step


def matrix_factorization(torch: Any) -> Step:
    nn = torch.nn
    parts = nn.ModuleList([nn.Embedding(n, k) for n, k in ((200, 16), (300, 16), (200, 1), (300, 1))])
    optimizer = torch.optim.SGD(fill(torch, parts).parameters(), lr=0.05)
    users, items, ratings = integers(torch, 200, 256), integers(torch, 300, 256, seed=6), floats(torch, 256)

    def step() -> float:
        dots = (parts[0](users) * parts[1](items)).sum(1)
        found = dots + parts[2](users).squeeze() + parts[3](items).squeeze()
        return _descends(((found - ratings) ** 2).mean(), optimizer)

    return step


def lbfgs(torch: Any) -> Step:
    """A fit of five steps, again and again: float32 and float64 go ways of their own after the sixth."""
    model, x, at = _mlp(torch, 1, 16, 1, activation="Tanh"), torch.linspace(-2, 2, 50).unsqueeze(1), [0]
    y, optimizers = torch.sin(2 * x), [torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)]

    def closure() -> Any:
        optimizers[0].zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    def step() -> float:
        at[0] += 1
        if at[0] % 5 == 0:
            fill(torch, model)
            optimizers[0] = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)
        return float(optimizers[0].step(closure).item())

    return step


def pinn(torch: Any) -> Step:
    """A damped oscillator, by second derivatives of a network."""
    model, x = _mlp(torch, 1, 32, 32, 1, activation="Tanh"), torch.linspace(0, 1, 30).view(-1, 1).requires_grad_(True)
    optimizer, start = torch.optim.Adam(model.parameters(), lr=1e-3), torch.zeros(1, 1)

    def step() -> float:
        u = model(x)
        dx = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
        dx2 = torch.autograd.grad(dx, x, torch.ones_like(dx), create_graph=True)[0]
        physics = torch.mean((dx2 + 4 * dx + 40 * u) ** 2)
        return _descends(torch.mean((model(start) - 1) ** 2) + 1e-4 * physics, optimizer)

    return step


def maml(torch: Any) -> Step:
    """A gradient through one step of descent, for each of four tasks."""
    w1, b1, w2, b2 = weight(torch, 1, 40), weight(torch, 40), weight(torch, 40, 1, seed=5), weight(torch, 1)
    parameters = [w1, b1, w2, b2]
    optimizer, x = torch.optim.Adam(parameters, lr=1e-3), floats(torch, 10, 1)

    def net(x: Any, p: Any) -> Any:
        return torch.relu(x @ p[0] + p[1]) @ p[2] + p[3]

    def step() -> float:
        loss = 0
        for task in range(4):
            y = torch.sin(x + task)
            inner = ((net(x, parameters) - y) ** 2).mean()
            grads = torch.autograd.grad(inner, parameters, create_graph=True)
            fast = [p - 0.01 * g for p, g in zip(parameters, grads, strict=True)]
            loss = loss + ((net(x, fast) - y) ** 2).mean()
        return _descends(loss / 4, optimizer)

    return step


def _pole(state: list[float], action: int) -> list[float]:
    """What a cart does next, near enough."""
    x, v, angle, turn = state
    push = 1.0 if action else -1.0
    return [x + 0.02 * v, v + 0.2 * push, angle + 0.02 * turn, turn + 0.3 * angle - 0.3 * push]


def reinforce(torch: Any) -> Step:
    """An episode of twenty actions a step, each drawn."""
    policy = _mlp(torch, 4, 128, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

    def step() -> float:
        state, log_probs, rewards = [0.01, 0.02, 0.03, 0.04], [], []
        for _ in range(20):
            probs = torch.softmax(policy(torch.tensor(state).unsqueeze(0)), dim=1)
            m = torch.distributions.Categorical(probs)
            action = m.sample()
            log_probs.append(m.log_prob(action))
            state = _pole(state, int(action.item()))
            rewards.append(1.0 - abs(state[2]))
        total: float = 0.0
        returns: deque[float] = deque()
        for r in rewards[::-1]:
            total = r + 0.99 * total
            returns.appendleft(total)
        weights = torch.tensor(list(returns))
        weights = (weights - weights.mean()) / (weights.std() + 1e-8)
        losses = [-p * r for p, r in zip(log_probs, weights, strict=True)]
        _descends(torch.cat(losses).sum(), optimizer)
        return sum(rewards)

    return step


def actor_critic(torch: Any) -> Step:
    nn = torch.nn
    parts = fill(torch, nn.ModuleList([nn.Linear(4, 64), nn.Linear(64, 2), nn.Linear(64, 1)]))
    optimizer = torch.optim.Adam(parts.parameters(), lr=3e-3)

    def step() -> float:
        state, kept, rewards = [0.01, 0.02, 0.03, 0.04], [], []
        for at in range(10):
            h = torch.relu(parts[0](torch.tensor(state)))
            probs, value = torch.softmax(parts[1](h), dim=-1), parts[2](h)
            kept.append((torch.log(probs[at % 2]), value))
            state = _pole(state, at % 2)
            rewards.append(1.0 - abs(state[2]))
        policy, values, total = [], [], 0.0
        for (log_prob, value), r in zip(kept[::-1], rewards[::-1], strict=True):
            total = r + 0.99 * total
            policy.append(-log_prob * (total - value.item()))
            values.append(nn.functional.smooth_l1_loss(value, torch.tensor([total])))
        return _descends(torch.stack(policy).sum() + torch.stack(values).sum(), optimizer)

    return step


def dqn(torch: Any) -> Step:
    """An action and a batch of replayed ones a step, with a target network that follows."""
    policy, target = _mlp(torch, 4, 128, 128, 2), _mlp(torch, 4, 128, 128, 2)
    optimizer, source = torch.optim.AdamW(policy.parameters(), lr=1e-4, amsgrad=True), numbers()
    memory: list[Any] = []
    state = [[0.01, 0.02, 0.03, 0.04]]

    def step() -> float:
        while True:
            with torch.no_grad():
                action = policy(torch.tensor([state[0]])).max(1).indices.view(1, 1)
            after = _pole(state[0], int(action.item()))
            reward = torch.tensor([1.0 - abs(after[2])])
            memory.append((torch.tensor([state[0]]), action, torch.tensor([after]), reward))
            state[0] = after if abs(after[2]) < 1 else [0.01, 0.02, 0.03, 0.04]
            if len(memory) >= 32:
                break
        batch = [memory[i] for i in source.choice(len(memory), 32, replace=False)]
        states, actions, others, rewards = (torch.cat(part) for part in zip(*batch, strict=True))
        values = policy(states).gather(1, actions)
        with torch.no_grad():
            expected = target(others).max(1).values * 0.99 + rewards
        loss = torch.nn.SmoothL1Loss()(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        ours, theirs = policy.state_dict(), target.state_dict()
        for key in ours:
            theirs[key] = ours[key] * 0.005 + theirs[key] * 0.995
        target.load_state_dict(theirs)
        return float(loss.item())

    return step


def _graph(torch: Any, n: int) -> Any:
    edges = (floats(torch, n, n) > 1.5).float()
    return ((edges + edges.t() + torch.eye(n)) > 0).float()


def gcn(torch: Any) -> Step:
    adj = _graph(torch, 100)
    adj = adj / adj.sum(dim=1, keepdim=True)
    w1, b1, w2, b2 = weight(torch, 50, 16), weight(torch, 16), weight(torch, 16, 7), weight(torch, 7)
    optimizer = torch.optim.Adam([w1, b1, w2, b2], lr=0.01, weight_decay=5e-4)
    x, y, train = floats(torch, 100, 50), integers(torch, 7, 100), torch.arange(60)

    def step() -> float:
        h = torch.relu(torch.mm(adj, torch.mm(x, w1)) + b1)
        out = torch.nn.functional.log_softmax(torch.mm(adj, torch.mm(h, w2)) + b2, dim=1)
        return _descends(torch.nn.functional.nll_loss(out[train], y[train]), optimizer)

    return step


def gat(torch: Any) -> Step:
    nn, adj = torch.nn, _graph(torch, 60)

    class Attention(nn.Module):
        def __init__(self, inputs: int, outputs: int) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.zeros(inputs, outputs))
            self.a = nn.Parameter(torch.zeros(2 * outputs, 1))
            self.n = outputs

        def forward(self, h: Any) -> Any:
            wh = torch.mm(h, self.w)
            e = nn.functional.leaky_relu(wh @ self.a[: self.n] + (wh @ self.a[self.n :]).T, 0.2)
            attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
            return nn.functional.elu(torch.matmul(nn.functional.softmax(attention, dim=1), wh))

    parts = fill(torch, nn.ModuleList([*(Attention(30, 8) for _ in range(4)), Attention(32, 5)]))
    optimizer = torch.optim.Adam(parts.parameters(), lr=5e-3, weight_decay=5e-4)
    x, y = floats(torch, 60, 30), integers(torch, 5, 60)

    def step() -> float:
        h = torch.cat([part(x) for part in list(parts)[:4]], dim=1)
        return _descends(nn.functional.nll_loss(nn.functional.log_softmax(parts[4](h), dim=1), y), optimizer)

    return step


def contrastive(torch: Any) -> Step:
    """Two views of each sample, told from all others."""
    model, x, functional = _mlp(torch, 32, 64, 16), floats(torch, 64, 32), torch.nn.functional
    optimizer, labels = torch.optim.Adam(model.parameters(), lr=1e-3), torch.cat([torch.arange(64) for _ in range(2)])
    same = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    mask = torch.eye(128, dtype=torch.bool)

    def step() -> float:
        features = functional.normalize(model(torch.cat([x, x + 0.1])), dim=1)
        logits = (features @ features.T / 0.5).masked_fill(mask, -1e9)
        loss = -(functional.log_softmax(logits, dim=1) * same.masked_fill(mask, 0.0)).sum(1).mean()
        return _descends(loss, optimizer)

    return step


def neural_ode(torch: Any) -> Step:
    """A spiral followed by fourth-order steps."""
    model, times = _mlp(torch, 2, 50, 2, activation="Tanh"), 8
    optimizer, start, end = torch.optim.RMSprop(model.parameters(), lr=1e-3), floats(torch, 20, 2), floats(torch, 20, 2)

    def step() -> float:
        y, dt = start, 0.1
        for _ in range(times):
            k1 = model(y**3)
            k2 = model((y + dt / 2 * k1) ** 3)
            k3 = model((y + dt / 2 * k2) ** 3)
            k4 = model((y + dt * k3) ** 3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return _descends(torch.mean(torch.abs(y - end)), optimizer)

    return step


LOOPS = (
    *map(Loop, (linear_regression, logistic_regression, polynomial, matrix_factorization, lbfgs, pinn, maml)),
    Loop(reinforce, draws=True),
    *map(Loop, (actor_critic, dqn, gcn, gat, contrastive, neural_ode)),
)
