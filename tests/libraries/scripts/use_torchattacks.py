import torch
import torchattacks
from seeding import fill

print("imported")

model = fill(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))).eval()
x, y = torch.linspace(0, 1, 24).view(2, 3, 2, 2), torch.tensor([0, 1])
for attack in (
    torchattacks.FGSM(model, eps=0.1),
    torchattacks.PGD(model, eps=0.1, alpha=0.02, steps=4, random_start=False),
    torchattacks.CW(model, steps=3),
    torchattacks.DeepFool(model, steps=3),
):
    print(type(attack).__name__, f"{attack(x, y).sum().item():.4f}")
