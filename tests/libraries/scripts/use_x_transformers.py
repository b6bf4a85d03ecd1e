"""A decoder with rotary positions and its kin, trained and asked to go on."""

import torch
from seeding import fill
from x_transformers import AutoregressiveWrapper, ContinuousTransformerWrapper, Decoder, Encoder, TransformerWrapper

print("imported")

ids = torch.arange(2 * 17).reshape(2, 17) * 5 % 31
for options in (
    {"rotary_pos_emb": True},
    {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
    {"alibi_pos_bias": True, "alibi_num_heads": 2},
    {"attn_qk_norm": True},
    {"attn_kv_heads": 1},
):
    model = AutoregressiveWrapper(
        TransformerWrapper(
            num_tokens=31, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options)
        )
    )
    fill(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(3):
        loss = model(ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.4f}")
    print(sorted(options), *losses, flush=True)
model.eval()
print(model.generate(ids[:, :4], 5, temperature=0.0).tolist(), flush=True)
encoder = ContinuousTransformerWrapper(
    dim_in=6, dim_out=3, max_seq_len=16, attn_layers=Encoder(dim=16, depth=1, heads=2)
)
fill(encoder)
print(f"{encoder(torch.linspace(-1, 1, 2 * 8 * 6).reshape(2, 8, 6), mask=torch.ones(2, 8).bool()).sum().item():.4f}")
