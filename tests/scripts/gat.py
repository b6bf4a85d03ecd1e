"""Two graph networks over a sparse adjacency matrix: a GCN by sparse products, a GAT by attention over edges."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from seeding import fill, normal

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N, CLASSES = 20, 3
edges = sorted({(i, (i * 3 + k) % N) for i in range(N) for k in (1, 2)} | {(i, i) for i in range(N)})
edges = torch.tensor(sorted({(a, b) for a, b in edges} | {(b, a) for a, b in edges})).t()
adj = torch.sparse_coo_tensor(edges, torch.ones(edges.shape[1]), (N, N)).coalesce()
degree = torch.sparse.sum(adj, dim=1).to_dense()
values = adj.values() / degree[adj.indices()[0]]
adj = torch.sparse_coo_tensor(adj.indices(), values, adj.size()).to(device)


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, input, adj):
        return torch.spmm(adj, torch.mm(input, self.weight)) + self.bias

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.weight.shape[0]} -> {self.weight.shape[1]})"


class GraphAttention(nn.Module):
    def __init__(self, inputs, outputs, alpha=0.2):
        super().__init__()
        self.W = nn.Parameter(torch.empty(inputs, outputs))
        self.a = nn.Parameter(torch.empty(1, 2 * outputs))
        self.leakyrelu = nn.LeakyReLU(alpha)

    def forward(self, input, adj):
        n, edge = input.size(0), adj.coalesce().indices()
        h = torch.mm(input, self.W)
        edge_h = torch.cat((h[edge[0, :], :], h[edge[1, :], :]), dim=1).t()
        edge_e = torch.exp(-self.leakyrelu(self.a.mm(edge_h).squeeze()))
        assert not torch.isnan(edge_e).any()
        matrix = torch.sparse_coo_tensor(edge, edge_e, torch.Size([n, n]))
        e_rowsum = torch.sparse.mm(matrix, torch.ones(size=(n, 1), device=input.device))
        return F.elu(torch.sparse.mm(matrix, h).div(e_rowsum))


class Net(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.one, self.two = layer(6, 8), layer(8, CLASSES)

    def forward(self, x, adj):
        return F.log_softmax(self.two(F.relu(self.one(x, adj)), adj), dim=1)


x, y = normal(N, 6).to(device), (torch.arange(N) % CLASSES).to(device)
train = torch.arange(0, 14).to(device)
print("edges", adj._nnz(), "sparse", adj.is_sparse, "degree %.3f" % degree.mean().item())
for layer in (GraphConvolution, GraphAttention):
    model = Net(layer).to(device)
    fill(model, scale=0.3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(int(os.environ.get("STEPS", 5))):
        model.train()
        optimizer.zero_grad()
        output = model(x, adj)
        loss = F.nll_loss(output[train], y[train])
        acc = output.max(1)[1].type_as(y).eq(y).double().sum() if device.type == "cpu" else output.max(1)[1].eq(y).sum()
        loss.backward()
        optimizer.step()
        print(
            "Epoch: {:04d}".format(epoch + 1), "loss: {:.4f}".format(loss.item()), "acc: {:.4f}".format(acc.item() / N)
        )
