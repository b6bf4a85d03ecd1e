import normflows as nf
import torch
from seeding import fill

print("imported")

flows = []
for _ in range(2):
    flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2])), nf.flows.Permute(2, mode="swap")]
model = fill(nf.NormalizingFlow(nf.distributions.DiagGaussian(2), flows))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.sin(torch.arange(8.0)).view(4, 2)
for _ in range(4):
    loss = model.forward_kld(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
print(model.sample(3)[0].shape)
