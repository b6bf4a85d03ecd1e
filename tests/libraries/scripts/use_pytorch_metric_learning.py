"""Losses of embeddings, with miners."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers
from seeding import fill, normal

print("imported")

x, labels = normal(24, 8), torch.arange(24) % 4
for name, loss_function in {
    "triplet": losses.TripletMarginLoss(
        margin=0.2, distance=distances.CosineSimilarity(), reducer=reducers.AvgNonZeroReducer()
    ),
    "contrastive": losses.ContrastiveLoss(),
    "ntxent": losses.NTXentLoss(),
    "supcon": losses.SupConLoss(),
    "multi": losses.MultiSimilarityLoss(),
    "circle": losses.CircleLoss(),
    "lifted": losses.LiftedStructureLoss(),
}.items():
    model = torch.nn.Linear(8, 4)
    fill(model, scale=0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    miner = miners.MultiSimilarityMiner() if name == "multi" else None
    values = []
    for step in range(3):
        embeddings = model(x)
        loss = loss_function(embeddings, labels, miner(embeddings, labels) if miner else None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(f"{loss.item():.4f}")
    print(name, *values, flush=True)
proxies = losses.ProxyAnchorLoss(4, 4)
fill(proxies, scale=0.5)
print("proxy", f"{proxies(model(x), labels).item():.4f}")
