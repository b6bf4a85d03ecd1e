"""An engine that trains, with handlers and metrics."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, PiecewiseLinear
from ignite.metrics import Accuracy, ConfusionMatrix, Loss, Precision, RunningAverage
from seeding import fill, normal
from torch.utils.data import DataLoader, TensorDataset

print("imported")

x = normal(40, 6)
data = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=10)
model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
fill(model, scale=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
metrics = {
    "accuracy": Accuracy(),
    "loss": Loss(criterion),
    "confusion": ConfusionMatrix(2),
    "precision": Precision(average=True),
}
evaluator = create_supervised_evaluator(model, metrics=metrics)
trainer.add_event_handler(Events.ITERATION_STARTED, PiecewiseLinear(optimizer, "lr", [(0, 0.01), (8, 0.001)]))
evaluator.add_event_handler(Events.COMPLETED, EarlyStopping(3, lambda engine: -engine.state.metrics["loss"], trainer))


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(data)
    values = evaluator.state.metrics
    print(
        engine.state.epoch,
        f"{engine.state.metrics['loss']:.4f} {values['accuracy']:.4f} {values['loss']:.4f} {values['precision']:.4f}",
        values["confusion"].tolist(),
        flush=True,
    )


trainer.run(data, max_epochs=3)
print(f"{optimizer.param_groups[0]['lr']:.5f}")
