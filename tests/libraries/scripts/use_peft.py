"""LoRA and its kin on a small model: trained, merged, saved and loaded."""

import tempfile

import torch
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from seeding import fill, normal

print("imported")


def base():
    torch.manual_seed(0)
    model = torch.nn.Sequential()
    model.add_module("first", torch.nn.Linear(8, 16))
    model.add_module("act", torch.nn.ReLU())
    model.add_module("last", torch.nn.Linear(16, 4))
    fill(model, scale=0.3)
    return model


x, y = normal(16, 8), torch.arange(16) % 4
for config in (
    LoraConfig(r=4, lora_alpha=8, target_modules=["first"], modules_to_save=["last"]),
    LoraConfig(r=2, target_modules=["first", "last"], use_dora=True, use_rslora=True),
    IA3Config(target_modules=["first"], feedforward_modules=["first"]),
):
    model = get_peft_model(base(), config)
    for name, parameter in model.named_parameters():
        if "lora_" in name and parameter.dim() > 1:
            with torch.no_grad():
                parameter.copy_(torch.linspace(-0.2, 0.3, parameter.numel()).reshape(parameter.shape))
    trained, total = model.get_nb_trainable_parameters()
    print(type(config).__name__, trained, total)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(4):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, f"{loss.item():.5f}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = PeftModel.from_pretrained(base(), folder)
        again.eval(), model.eval()
        print("loaded", torch.allclose(again(x), model(x), atol=1e-5), flush=True)
        low = PeftModel.from_pretrained(base(), folder, low_cpu_mem_usage=True)
        print("low", torch.allclose(low.eval()(x), model(x), atol=1e-5), flush=True)
    expected = model(x)
    merged = model.merge_and_unload()
    print("merged", torch.allclose(merged(x), expected, atol=1e-5), type(merged).__name__)
