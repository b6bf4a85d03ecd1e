"""Low ranks beside layers."""

import loralib
import torch
from seeding import fill, normal

print("imported")

model = torch.nn.Sequential(
    loralib.Linear(8, 16, r=4), torch.nn.ReLU(), loralib.MergedLinear(16, 12, r=2, enable_lora=[True, False, True])
)
fill(model, scale=0.3)
loralib.mark_only_lora_as_trainable(model)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
x = normal(8, 8)
for step in range(3):
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}", flush=True)
expected = model(x)
model.eval()
print(torch.allclose(model(x), expected, atol=1e-5), sorted(loralib.lora_state_dict(model)))
