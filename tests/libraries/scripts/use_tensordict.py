"""Tensors in a dictionary of one batch."""

import torch
from seeding import fill, normal
from tensordict import TensorDict, lazy_stack, tensorclass
from tensordict.nn import TensorDictModule, TensorDictSequential

print("imported")

data = TensorDict({"x": normal(4, 3), "y": torch.arange(4), "inner": {"z": normal(4, 2, seed=1)}}, batch_size=[4])
print(data.shape, sorted(data.keys(True, True), key=str), data.device)
print(data[1:3]["inner", "z"].shape, data["x"].sum().item() == data.get("x").sum().item())
stacked = torch.stack([data, data])
print(stacked.shape, torch.cat([data, data]).shape, data.reshape(2, 2)["x"].shape, data.unsqueeze(0).shape, flush=True)
data["new"] = data["x"] * 2
data.set_("y", torch.zeros(4, dtype=torch.long))
print(
    sorted(data.exclude("new").keys()),
    data["y"].tolist(),
    (data == data).all(),
    data.apply(lambda value: value + 1)["y"].tolist(),
)
print(
    data.to_dict()["inner"]["z"].shape,
    data.flatten_keys(".").keys() >= {"inner.z"},
    data.clone().to(torch.float64)["x"].dtype,
)
print(lazy_stack([data[0], data[1]])["x"].shape, [part.shape for part in data.split(2)], flush=True)


@tensorclass
class Pair:
    image: torch.Tensor
    label: torch.Tensor


pair = Pair(image=normal(4, 3), label=torch.arange(4), batch_size=[4])
print(pair[:2].label.tolist(), pair.batch_size, flush=True)
first = TensorDictModule(torch.nn.Linear(3, 8), in_keys=["x"], out_keys=["h"])
second = TensorDictModule(torch.nn.Linear(8, 2), in_keys=["h"], out_keys=["out"])
model = TensorDictSequential(first, second)
fill(model, scale=0.3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(data)["out"].pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}", flush=True)
parameters = TensorDict.from_module(model)
with parameters.data.apply(torch.zeros_like).to_module(model):
    print(f"{model(data)['out'].abs().sum().item():.1f}")
print(f"{model(data)['out'].std().item():.5f}", (parameters * 0.5).is_empty())
