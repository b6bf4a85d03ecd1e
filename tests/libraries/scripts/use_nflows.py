"""Normalizing flows."""

import torch
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms import ReversePermutation
from nflows.transforms.autoregressive import (
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
)
from nflows.transforms.base import CompositeTransform
from seeding import fill, normal

print("imported")

x = normal(32, 2)
for kind, options in (
    (MaskedAffineAutoregressiveTransform, {}),
    (MaskedPiecewiseRationalQuadraticAutoregressiveTransform, {"tails": "linear", "tail_bound": 3.0, "num_bins": 4}),
):
    parts = [part for _ in range(2) for part in (ReversePermutation(2), kind(features=2, hidden_features=8, **options))]
    flow = Flow(CompositeTransform(parts), StandardNormal([2]))
    fill(flow, scale=0.3)
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    for step in range(3):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, step, f"{loss.item():.4f}", flush=True)
    print(flow.sample(5).shape)
