import torch
import zuko
from seeding import fill

print("imported")

device = torch.get_default_device()
with torch.device("cpu"):  # Masks of its layers are computed in float64.
    flow = fill(zuko.flows.NSF(features=2, context=1, transforms=2, hidden_features=[8]))
flow = flow.to(device)
x, context = torch.sin(torch.arange(8.0)).view(4, 2), torch.linspace(0, 1, 4)[:, None]
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
for _ in range(4):
    loss = -flow(context).log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
print(flow(context[0]).sample((3,)).shape)
