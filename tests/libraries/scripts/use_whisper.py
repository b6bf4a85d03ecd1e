import torch
from seeding import fill
from whisper.model import ModelDimensions, Whisper

print("imported")

sizes = ModelDimensions(
    n_mels=8,
    n_audio_ctx=10,
    n_audio_state=16,
    n_audio_head=2,
    n_audio_layer=1,
    n_vocab=20,
    n_text_ctx=8,
    n_text_state=16,
    n_text_head=2,
    n_text_layer=1,
)
model = fill(Whisper(sizes))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
mel, tokens = torch.linspace(-1, 1, 8 * 20).view(1, 8, 20), torch.tensor([[1, 2, 3]])
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(model(mel, tokens)[0], torch.tensor([2, 3, 4]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
