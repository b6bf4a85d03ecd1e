"""Losses and heads of self-supervised learning."""

import torch
from lightly.loss import BarlowTwinsLoss, NegativeCosineSimilarity, NTXentLoss, VICRegLoss
from lightly.models.modules import BYOLPredictionHead, SimCLRProjectionHead
from seeding import fill, normal

print("imported")

a, b = normal(6, 12), normal(6, 12, seed=1)
for head in (SimCLRProjectionHead(12, 16, 8), BYOLPredictionHead(12, 16, 8)):
    for loss_of in (NTXentLoss(), BarlowTwinsLoss(), VICRegLoss(), NegativeCosineSimilarity()):
        fill(head, scale=0.3)
        optimizer = torch.optim.SGD(head.parameters(), lr=1e-2)
        for _ in range(2):
            loss = loss_of(head(a), head(b))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(type(head).__name__, type(loss_of).__name__, f"{loss.item():.4f}", flush=True)
