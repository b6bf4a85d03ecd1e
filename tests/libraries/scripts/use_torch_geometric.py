"""Graphs: convolutions, attention, pooling, batches of graphs."""

import torch
from seeding import fill, normal
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    SAGEConv,
    SAGPooling,
    TopKPooling,
    TransformerConv,
    global_max_pool,
    global_mean_pool,
)  # fmt: skip

print("imported")
F = torch.nn.functional


def edges(nodes, count, factor):
    start = torch.arange(count) * factor % nodes
    return torch.stack([start, (start * 3 + torch.arange(count) // 2) % nodes])


class Net(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.first, self.second = layer(8, 16), layer(16, 3)

    def forward(self, x, edge_index):
        return self.second(F.relu(self.first(x, edge_index)), edge_index)


def perceptron(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 16), torch.nn.ReLU(), torch.nn.Linear(16, outputs))


LAYERS = {
    "GCN": GCNConv,
    "GAT": lambda a, b: GATConv(a, b, heads=2, concat=False),
    "SAGE": SAGEConv,
    "GIN": lambda a, b: GINConv(perceptron(a, b)),
    "Transformer": lambda a, b: TransformerConv(a, b, heads=2, concat=False),
}
data = Data(x=normal(60, 8), edge_index=edges(60, 240, 7), y=torch.arange(60) % 3)
print(data, data.num_nodes, data.is_undirected())
for name, layer in LAYERS.items():
    model = Net(layer)
    fill(model, scale=0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        loss = F.cross_entropy(model(data.x, data.edge_index), data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.5f}")
    print(name, *losses, flush=True)


class Pooled(torch.nn.Module):
    def __init__(self, pooling):
        super().__init__()
        self.first, self.pool, self.second = GCNConv(8, 16), pooling(16, ratio=0.6), SAGEConv(16, 16)
        self.last = torch.nn.Linear(32, 2)

    def forward(self, batch):
        x = F.relu(self.first(batch.x, batch.edge_index))
        x, edge_index, _, which, *_ = self.pool(x, batch.edge_index, None, batch.batch)
        x = F.relu(self.second(x, edge_index))
        return self.last(torch.cat([global_mean_pool(x, which), global_max_pool(x, which)], 1))


sizes = [8 + 3 * i % 7 for i in range(16)]
features = normal(sum(sizes), 8).split(sizes)
graphs = [Data(x=x, edge_index=edges(len(x), 3 * len(x), 5), y=torch.tensor([i % 2])) for i, x in enumerate(features)]
for pooling in (TopKPooling, SAGPooling):
    model = Pooled(pooling)
    fill(model, scale=0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(2):
        for batch in DataLoader(graphs, batch_size=8):
            loss = F.cross_entropy(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(f"{loss.item():.5f}")
    print(pooling.__name__, *losses, flush=True)
