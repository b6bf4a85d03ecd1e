"""A LightningModule fitted, validated, saved and tested by a Trainer; and Fabric."""

import tempfile
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from seeding import fill, normal
from torch.utils.data import DataLoader, TensorDataset

print("imported")
warnings.simplefilter("ignore")


class Net(lightning.LightningModule):
    digits = 5

    def __init__(self, width: int = 16, lr: float = 1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
        fill(self.layers, scale=0.3)

    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layers(x), y)
        self.log("train_loss", loss)
        print("step", self.global_step, f"{loss.item():.{self.digits}f}", flush=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", torch.nn.functional.mse_loss(self.layers(x), y), prog_bar=True)

    def test_step(self, batch, index):
        self.validation_step(batch, index)

    def predict_step(self, batch, index):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)}


x = normal(32, 8)
data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
with tempfile.TemporaryDirectory() as folder:
    saving = ModelCheckpoint(folder, monitor="val_loss", save_top_k=1)
    trainer = lightning.Trainer(
        max_epochs=3, accelerator="cpu", logger=CSVLogger(folder), callbacks=[saving, EarlyStopping("val_loss"), LearningRateMonitor()],
        enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0, log_every_n_steps=1,
    )  # fmt: skip
    net = Net()
    trainer.fit(net, data, data)
    print({name: f"{value.item():.5f}" for name, value in sorted(trainer.callback_metrics.items())})
    again = Net.load_from_checkpoint(saving.best_model_path)
    print(again.hparams.width, torch.equal(again.layers[0].weight.cpu(), net.layers[0].weight.cpu()), flush=True)
    scores = trainer.test(net, data, verbose=False)
    print([{name: f"{value:.5f}" for name, value in score.items()} for score in scores])
    out = trainer.predict(net, data)
    print(len(out), f"{torch.cat(out).mean().item():.5f}")
    more = lightning.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    more.fit(net, data, ckpt_path=saving.best_model_path)
    half = lightning.Trainer(
        max_steps=2,
        accelerator="cpu",
        precision="bf16-mixed",
        accumulate_grad_batches=2,
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
    )
    net = Net()
    net.digits = 0
    half.fit(net, data)
fabric = lightning.Fabric(accelerator="cpu")
model = torch.nn.Linear(8, 1)
fill(model)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
for a, b in fabric.setup_dataloaders(data):
    loss = torch.nn.functional.mse_loss(model(a), b)
    optimizer.zero_grad()
    fabric.backward(loss)
    optimizer.step()
    print("fabric", f"{loss.item():.5f}")
