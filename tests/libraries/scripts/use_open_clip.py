"""A small CLIP, trained for some steps."""

import torch
from open_clip.loss import ClipLoss
from open_clip.model import CLIP
from seeding import fill, normal

print("imported")

vision = {"layers": 1, "width": 32, "head_width": 16, "patch_size": 8, "image_size": 16}
text = {"context_length": 8, "vocab_size": 50, "width": 32, "heads": 2, "layers": 1}
model = fill(CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text), scale=0.2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images, tokens = normal(3, 3, 16, 16), torch.arange(24).view(3, 8)
for _ in range(3):
    loss = ClipLoss()(*model(images, tokens))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
print(f"{model.encode_text(tokens, normalize=True).sum().item():.4f}")
