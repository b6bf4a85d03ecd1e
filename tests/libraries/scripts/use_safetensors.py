"""Tensors and a model in files."""

import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from seeding import fill

print("imported")

tensors = {
    name: torch.arange(12).reshape(3, 4).to(dtype)
    for name, dtype in dict(
        a=torch.float32, b=torch.float16, c=torch.bfloat16, d=torch.int64, e=torch.uint8, f=torch.bool, g=torch.float64
    ).items()
}
tensors["weight"] = torch.linspace(0, 1, 6)[::2].contiguous()
with tempfile.TemporaryDirectory() as folder:
    save_file(tensors, f"{folder}/a.safetensors", metadata={"format": "pt"})
    again = load_file(f"{folder}/a.safetensors")
    print(
        {
            name: (str(value.dtype), tuple(value.shape), torch.equal(value, tensors[name]))
            for name, value in sorted(again.items())
        }
    )
    with safe_open(f"{folder}/a.safetensors", framework="pt", device="cpu") as file:
        print(sorted(file.keys()), file.metadata())
        print(file.get_tensor("a").sum().item(), file.get_slice("a")[:2, 1:].tolist(), file.get_slice("c").get_shape())
    print(load(save({"x": tensors["a"]}))["x"].tolist())
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    fill(model)
    save_model(model, f"{folder}/m.safetensors")
    other = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    print(load_model(other, f"{folder}/m.safetensors"), torch.equal(other[0].weight, model[0].weight))
    loss = other(tensors["a"]).pow(2).mean()
    loss.backward()
    print(f"{loss.item():.5f} {other[0].weight.grad.sum().item():.5f}")
    tied = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    save_model(tied, f"{folder}/t.safetensors")
    print(sorted(load_file(f"{folder}/t.safetensors")))
    try:
        save_file(tied.state_dict(), f"{folder}/u.safetensors")
    except RuntimeError as error:
        print("shared", "weight" in str(error))
