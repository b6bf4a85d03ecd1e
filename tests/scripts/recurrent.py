"""Names to languages: an LSTM over packed sequences of different lengths, then a GRU and a plain RNN."""

import os

import torch
import torch.nn as nn
from seeding import fill
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

NAMES = ["smith", "jones", "garcia", "li", "muller", "rossi", "kim", "ivanov"]
LABELS = torch.tensor([0, 0, 1, 2, 0, 1, 2, 1])


class Classifier(nn.Module):
    def __init__(self, kind, vocab=27, embed=8, hidden=16, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, embed, padding_idx=0)
        self.rnn = getattr(nn, kind)(embed, hidden, num_layers=2, batch_first=True, bidirectional=kind == "LSTM")
        self.fc = nn.Linear(hidden * (2 if kind == "LSTM" else 1), classes)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        out, sizes = pad_packed_sequence(out, batch_first=True)
        mask = (torch.arange(out.size(1), device=x.device)[None] < sizes.to(x.device)[:, None]).unsqueeze(-1)
        return self.fc((out * mask).sum(1) / sizes.to(x.device).unsqueeze(1))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
encoded = [torch.tensor([ord(c) - 96 for c in name]) for name in NAMES]
lengths = torch.tensor([len(e) for e in encoded])
x = pad_sequence(encoded, batch_first=True, padding_value=0).to(device)
y = LABELS.to(device)
for kind in ("LSTM", "GRU", "RNN"):
    model = Classifier(kind).to(device)
    fill(model, scale=0.3)
    for p in (p for name, p in model.named_parameters() if "bias" in name):
        nn.init.zeros_(p)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    for epoch in range(int(os.environ.get("STEPS", 4))):
        model.train()
        loss = nn.CrossEntropyLoss()(model(x, lengths), y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        print(kind, epoch, f"{loss.item():.5f}")
