import higher
import torch

print("imported")

model = torch.nn.Linear(3, 1)
with torch.no_grad():
    for weight in model.parameters():
        weight.fill_(0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x = torch.sin(torch.arange(12.0)).view(4, 3)
with higher.innerloop_ctx(model, optimizer, copy_initial_weights=False) as (inner, steps):
    for _ in range(3):
        steps.step(inner(x).square().mean())
    loss = inner(x).sum()
    loss.backward()
print(f"{loss.item():.5f}", [[round(v, 5) for v in row] for row in model.weight.grad.tolist()])
