"""REINFORCE on a walk along a line; which action comes is given, its probability is a Categorical's."""

import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from seeding import fill
from torch.distributions import Categorical

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


policy = Policy().to(device)
fill(policy, scale=0.3)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = torch.finfo(torch.float32).eps
source = random.Random(3)


def select_action(state):
    state = torch.tensor(state).float().unsqueeze(0).to(device)
    m = Categorical(policy(state))
    assert m.sample().shape == (1,)
    action = torch.tensor([int(source.random() < 0.6)], device=device)
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item(), m.entropy()


def finish_episode():
    R, policy_loss, returns = 0, [], []
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = ((returns - returns.mean()) / (returns.std() + eps)).to(device)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.item()


for episode in range(int(os.environ.get("STEPS", 4))):
    position, entropy = 0.0, 0.0
    for t in range(12):
        action, e = select_action([position, position**2 / 10, t / 12, 1.0])
        position += 1 if action else -1
        policy.rewards.append(-abs(position - 3))
        entropy += e.item()
    print(
        "Episode {}\tposition {:.1f}\tentropy {:.4f}\tloss {:.4f}".format(episode, position, entropy, finish_episode())
    )
