"""A tokenizer trained on a few lines, whose numbers become tensors."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

print("imported")

tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
lines = ["the cat sat on the mat", "the dog ran under the tree", "a cat and a dog"] * 4
tokenizer.train_from_iterator(
    lines, trainers.BpeTrainer(vocab_size=60, special_tokens=["[UNK]", "[PAD]"], show_progress=False)
)
tokenizer.enable_padding(pad_id=1)
batch = torch.tensor([encoding.ids for encoding in tokenizer.encode_batch(lines[:3])])
print(batch.shape, tokenizer.decode(batch[0].tolist()))
embedding = torch.nn.Embedding(60, 8)
with torch.no_grad():
    embedding.weight.copy_(torch.linspace(-1, 1, 480).reshape(60, 8))
loss = embedding(batch).pow(2).mean()
loss.backward()
print(f"{loss.item():.5f} {embedding.weight.grad.abs().sum().item():.5f}")
