import torch
import torchattacks

print("imported")


def fill(module):
    """Numbers that are the same wherever it runs."""
    with torch.no_grad():
        for number, weight in enumerate(module.parameters()):
            weight.copy_(torch.sin(torch.arange(weight.numel()).float() * 0.7 + number).view(weight.shape) * 0.3)
    return module


model = fill(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))).eval()
x, y = torch.linspace(0, 1, 24).view(2, 3, 2, 2), torch.tensor([0, 1])
for attack in (
    torchattacks.FGSM(model, eps=0.1),
    torchattacks.PGD(model, eps=0.1, alpha=0.02, steps=4, random_start=False),
    torchattacks.CW(model, steps=3),
    torchattacks.DeepFool(model, steps=3),
):
    print(type(attack).__name__, f"{attack(x, y).sum().item():.4f}")
