"""Cart-pole: a cart learns by trial and error to keep a pole upright."""

import os
from math import cos, sin

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "40"))  # rounds of trials, after each of which it learns
CARTS, MOMENTS = 64, 120  # that are tried side by side; in a trial, each of a fiftieth of a second
FORCE, GRAVITY, CART, POLE, HALF = 10.0, 9.8, 1.0, 0.1, 0.5

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(policy.parameters(), lr=0.02)


def physics(state, force):
    """Where carts and poles are a moment later: place, speed, angle, turning. As Barto, Sutton and Anderson, 1983."""
    x, v, angle, turn = state.unbind(1)
    total = CART + POLE
    push = (force + POLE * HALF * turn.square() * angle.sin()) / total
    fall = GRAVITY * angle.sin() - angle.cos() * push
    spin = fall / (HALF * (4 / 3 - POLE * angle.cos().square() / total))
    pull = push - POLE * HALF * spin * angle.cos() / total
    return torch.stack([x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * turn, turn + 0.02 * spin], dim=1)


@torch.compile
def move(state, alive):
    """Draws what each cart does, and does it: to the left or to the right. What fell stays fallen."""
    with torch.no_grad():
        right = torch.rand(CARTS) < policy(state).softmax(1)[:, 1]
        after = physics(state, FORCE * (2 * right.float() - 1))
        stands = (after[:, 0].abs() < 2.4) & (after[:, 2].abs() < 0.21)
        return after, alive * stands.float(), right.long()


def trial():
    """What the carts saw, what they did, and until when each pole stood."""
    state, alive = 0.1 * torch.rand(CARTS, 4) - 0.05, torch.ones(CARTS)
    states, actions, lives = [], [], []
    for _ in range(MOMENTS):
        states.append(state)
        lives.append(alive)
        state, alive, action = move(state, alive)
        actions.append(action)
    return torch.stack(states), torch.stack(actions), torch.stack(lives)


@torch.compile
def learn(states, actions, lives):
    """REINFORCE: what was done before a long life becomes likelier than what was done before a short one."""
    ahead = lives.flip(0).cumsum(0).flip(0)  # How long each pole still stood, at each moment.
    better = (ahead - ahead.sum(1, keepdim=True) / lives.sum(1, keepdim=True).clamp(min=1)) * lives
    better = better / (better.square().sum() / lives.sum()).sqrt().clamp(min=1e-3)
    scores = policy(states.flatten(0, 1)).log_softmax(1)
    chosen = scores.gather(1, actions.reshape(-1, 1)).reshape(MOMENTS, CARTS)
    loss = -(chosen * better).sum() / lives.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return lives.sum(0).mean()


def draw(state, said):
    x, _, angle, _ = state
    cart = 160 + 60 * x
    tip = f'x2="{cart + 90 * sin(angle):.1f}" y2="{120 - 90 * cos(angle):.1f}"'
    return display.Picture(
        '<svg viewBox="0 0 320 160" width="320" style="max-width:100%"><path d="M8 142H312" stroke="currentColor"/>'
        f'<rect x="{cart - 25:.1f}" y="118" width="50" height="22" rx="4" fill="#3f6fd8"/>'
        f'<line x1="{cart:.1f}" y1="120" {tip} stroke="#c8552b" stroke-width="7" stroke-linecap="round"/></svg>'
        f"<div>{said}</div>",
        said,
    )


with display.Live("How long poles stand") as live:
    for at in range(STEPS):
        states, actions, lives = trial()
        stood = learn(states, actions, lives)
        live.log(moments=stood)
        if at % 2 == 0:
            last = int(lives[:, 0].sum().item()) - 1
            live.show(draw(states[last, 0].tolist(), f"round {at}: a pole stood for {last + 1} of {MOMENTS} moments"))

states, _, lives = trial()
with display.Live(every=0.03) as live:
    for at, state in enumerate(states[:, 0].tolist()):
        live.show(draw(state, f"moment {at}"))
print(f"after {STEPS} rounds poles stand for {lives.sum(0).mean().item():.0f} of {MOMENTS} moments")
