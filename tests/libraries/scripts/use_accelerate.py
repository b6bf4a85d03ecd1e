"""A loop as accelerate writes it: mixed precision, accumulated gradients, a checkpoint, an empty model that is filled."""

import tempfile

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import set_seed
from seeding import fill, normal
from torch.utils.data import DataLoader, TensorDataset

print("imported")

set_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
fill(model, scale=0.3)
x = normal(32, 8)
y = x.sum(1, keepdim=True)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
model, optimizer, loader, schedule = accelerator.prepare(
    model, optimizer, DataLoader(TensorDataset(x, y), batch_size=8), schedule
)
for epoch in range(2):
    for a, b in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(a), b)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        print(epoch, accelerator.sync_gradients, f"{loss.item():.5f}", schedule.get_last_lr(), flush=True)
print(accelerator.gather(loss.detach()).shape, accelerator.device, accelerator.num_processes)
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = model[0].weight.clone()
    with torch.no_grad():
        model[0].weight.zero_()
    accelerator.load_state(folder)
    print("loaded", torch.equal(before, model[0].weight), flush=True)
    accelerator.save_model(model, f"{folder}/model")
    with init_empty_weights():
        empty = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    print({parameter.device.type for parameter in empty.parameters()}, flush=True)
    full = load_checkpoint_and_dispatch(empty, f"{folder}/model", device_map={"": "cpu"})
    print("dispatched", torch.equal(full(x), model(x)))
