"""Attention of linear cost."""

import torch
from linformer import LinformerLM, LinformerSelfAttention
from seeding import fill, normal

print("imported")

model = fill(LinformerLM(num_tokens=20, dim=16, seq_len=12, depth=2, heads=2, k=4), scale=0.2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
tokens = (torch.arange(24) * 7 % 20).view(2, 12)
for _ in range(3):
    logits = model(tokens)
    loss = torch.nn.functional.cross_entropy(logits.view(-1, 20), tokens.roll(-1, 1).reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
attention = fill(LinformerSelfAttention(dim=16, seq_len=12, heads=2, k=4, one_kv_head=True, share_kv=True))
print(f"{attention(normal(1, 12, 16), normal(1, 12, 16, seed=1)).sum().item():.4f}")
