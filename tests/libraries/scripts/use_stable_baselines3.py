"""Agents that learn in a small world."""

import gymnasium
import numpy as np
import torch
from seeding import fill
from stable_baselines3 import A2C, DQN, PPO, SAC

print("imported")


class Corridor(gymnasium.Env):
    def __init__(self, continuous=False):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = (
            gymnasium.spaces.Box(-1, 1, (1,), np.float32) if continuous else gymnasium.spaces.Discrete(2)
        )
        self.at = self.steps = 0

    def reset(self, *, seed=None, options=None):
        self.at = self.steps = 0
        return self.seen(), {}

    def seen(self):
        return np.array([self.at / 10, self.steps / 10], np.float32)

    def step(self, action):
        self.at += float(np.asarray(action).reshape(-1)[0]) * 2 - 1
        self.steps += 1
        return self.seen(), self.at / 10, self.steps >= 10, False, {}


for kind, options in (
    (PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}),
    (A2C, {"n_steps": 8}),
    (DQN, {"learning_starts": 16}),
    (SAC, {"learning_starts": 16}),
):
    agent = kind("MlpPolicy", Corridor(kind is SAC), seed=0, device="cpu", policy_kwargs={"net_arch": [16]}, **options)
    fill(agent.policy, scale=0.2)
    action, _ = agent.predict(np.array([0.1, 0.2], np.float32), deterministic=True)
    print(kind.__name__, np.round(action, 4).tolist(), flush=True)
    agent.learn(64)
    print(
        agent.num_timesteps, all(bool(torch.isfinite(value).all()) for value in agent.policy.parameters()), flush=True
    )
    agent.save("agent")
    again = kind.load("agent", device="cpu")
    print(all(torch.equal(a, b) for a, b in zip(agent.policy.parameters(), again.policy.parameters())))
