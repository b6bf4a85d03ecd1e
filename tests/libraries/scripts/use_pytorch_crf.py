import torch
from seeding import fill
from torchcrf import CRF

print("imported")

model = fill(CRF(4, batch_first=True))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scores, tags = torch.sin(torch.arange(24.0)).view(2, 3, 4), torch.tensor([[0, 1, 2], [3, 1, 0]])
mask = torch.tensor([[1, 1, 1], [1, 1, 0]], dtype=torch.bool)
for _ in range(3):
    loss = -model(scores, tags, mask=mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}", model.decode(scores, mask=mask))
