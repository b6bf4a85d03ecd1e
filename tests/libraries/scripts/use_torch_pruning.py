import torch
import torch_pruning as tp
from seeding import fill

print("imported")

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, padding=1),
    torch.nn.BatchNorm2d(8),
    torch.nn.ReLU(),
    torch.nn.Conv2d(8, 16, 3, padding=1),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(16, 4),
)
fill(model).eval()
example = torch.ones(1, 3, 8, 8)
importance = tp.importance.MagnitudeImportance(p=2)
pruner = tp.pruner.MagnitudePruner(model, example, importance=importance, pruning_ratio=0.5, ignored_layers=[model[6]])
print(tp.utils.count_ops_and_params(model, example))
pruner.step()
print(tp.utils.count_ops_and_params(model, example), model[0].weight.shape, f"{model(example).sum().item():.5f}")
