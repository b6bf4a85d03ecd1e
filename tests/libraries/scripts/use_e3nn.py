"""Networks that turn with their inputs: tensor products whose code is made as a graph."""

import torch
from e3nn import o3
from seeding import fill, normal

print("imported")
inputs, outputs = o3.Irreps("4x0e+2x1o"), o3.Irreps("3x0e+2x1o+1x2e")
harmonics = o3.Irreps.spherical_harmonics(2)
print(inputs.dim, outputs.dim, harmonics, f"{o3.wigner_3j(1, 1, 2).abs().sum().item():.5f}")


class Convolution(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.product = o3.FullyConnectedTensorProduct(inputs, harmonics, outputs, shared_weights=False)
        sizes = (8, 16, self.product.weight_numel)
        self.weights = torch.nn.Sequential(torch.nn.Linear(*sizes[:2]), torch.nn.SiLU(), torch.nn.Linear(*sizes[1:]))
        self.linear = o3.Linear(inputs, outputs)

    def forward(self, x, edges, lengths, directions):
        messages = self.product(x[edges[0]], directions, self.weights(lengths))
        return torch.zeros(len(x), outputs.dim).index_add_(0, edges[1], messages) + self.linear(x)


model = Convolution()
fill(model, scale=0.3)
start = torch.arange(30) % 10
edges = torch.stack([start, (start + 1 + torch.arange(30) // 10) % 10])
places, x, lengths = normal(10, 3), normal(10, inputs.dim), normal(30, 8)
vectors = places[edges[1]] - places[edges[0]]


def directions(vectors):
    return o3.spherical_harmonics(harmonics, vectors, normalize=True, normalization="component")


optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(5):
    loss = model(x, edges, lengths, directions(vectors)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}", flush=True)
turn = o3.matrix_x(torch.tensor(0.3)) @ o3.matrix_y(torch.tensor(1.1))
turned = model(x @ inputs.D_from_matrix(turn).T, edges, lengths, directions(vectors @ turn.T))
difference = turned - model(x, edges, lengths, directions(vectors)) @ outputs.D_from_matrix(turn).T
print("it turns along:", bool(difference.abs().max() < 1e-4))
