"""A Learner fitted over a table of numbers, by the one-cycle policy."""

import torch
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy, set_seed
from fastai.callback.schedule import *
from fastai.optimizer import Adam, ranger
from seeding import fill, normal

print("imported")

x = normal(64, 6)
y = (x.sum(1) > 0).long()
for optimizer in (Adam, ranger):
    set_seed(0)
    data = DataLoaders(DataLoader(list(zip(x, y)), bs=16), DataLoader(list(zip(x, y)), bs=16), device="cpu")
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2)
    )
    fill(model, scale=0.3)
    learner = Learner(data, model, loss_func=torch.nn.functional.cross_entropy, opt_func=optimizer, metrics=accuracy)
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(3, 1e-2)
        print([[f"{value:.4f}" for value in row] for row in learner.recorder.values], flush=True)
        learner.freeze_to(-1)
        learner.unfreeze()
        learner.fit(1, slice(1e-4, 1e-3))
    print([f"{value:.4f}" for value in learner.validate()])
    predictions, targets = learner.get_preds()
    print(predictions.shape, f"{predictions.std().item():.5f}", flush=True)
learner.save("model")
learner.load("model")
