import torch
from opacus import GradSampleModule, PrivacyEngine
from seeding import fill
from torch.utils.data import DataLoader, TensorDataset

print("imported")

model = fill(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 2)))
sampled = GradSampleModule(model)
loss = torch.nn.functional.cross_entropy(
    sampled(torch.sin(torch.arange(48.0)).view(3, 1, 4, 4)), torch.tensor([0, 1, 0])
)
loss.backward()
print([(tuple(p.grad_sample.shape), round(p.grad_sample.abs().sum().item(), 3)) for p in model.parameters()])

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8)
engine = PrivacyEngine()
model, optimizer, loader = engine.make_private(
    module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
)
for x, y in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(round(engine.get_epsilon(1e-5), 3))
