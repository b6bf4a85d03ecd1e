"""Axes by names."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from seeding import fill, normal

print("imported")

x = normal(2, 3, 8, 8)
print(
    rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4).shape,
    f"{reduce(x, 'b c h w -> c', 'mean')[1].item():.5f}",
)
print(repeat(x[:, :1], "b 1 h w -> b c h w", c=3).shape, f"{einsum(x, x, 'b c h w, b d h w -> c d').sum().item():.3f}")
packed, shapes = pack([x[:, 0], x], "b * h w")
print(packed.shape, [part.shape for part in unpack(packed, shapes, "b * h w")])
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), Reduce("b c (h 2) (w 2) -> b c h w", "max"),
    Rearrange("b c h w -> b (h w) c"), EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=8, d=4), Reduce("b t d -> b d", "mean"),
)  # fmt: skip
fill(model, scale=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.5f}", flush=True)
