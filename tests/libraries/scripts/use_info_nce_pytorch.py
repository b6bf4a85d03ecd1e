"""Contrastive losses."""

import torch
from info_nce import InfoNCE
from seeding import fill, normal

print("imported")

encoder = fill(torch.nn.Linear(8, 4), scale=0.3)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
a, b, others = normal(6, 8), normal(6, 8, seed=1), normal(6, 5, 8, seed=2)
for loss_of, negatives in ((InfoNCE(), None), (InfoNCE(negative_mode="paired", temperature=0.5), others)):
    for _ in range(3):
        loss = loss_of(encoder(a), encoder(b), None if negatives is None else encoder(negatives))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.5f}")
