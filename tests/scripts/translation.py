"""Translation by nn.Transformer: masks, teacher forcing, a checkpoint that is saved, loaded and trained on, greedy decoding."""

import math
import os
import tempfile

import torch
import torch.nn as nn
from seeding import fill
from torch import Tensor
from torch.nn import Transformer

PAD_IDX, BOS_IDX, EOS_IDX = 0, 1, 2
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size: int, dropout: float, maxlen: int = 50):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding.unsqueeze(-2))

    def forward(self, token_embedding: Tensor):
        return self.dropout(token_embedding + self.pos_embedding[: token_embedding.size(0), :])


class Seq2Seq(nn.Module):
    def __init__(self, vocab, emb=16, heads=2):
        super().__init__()
        self.transformer = Transformer(
            d_model=emb, nhead=heads, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32, dropout=0.0
        )
        self.generator = nn.Linear(emb, vocab)
        self.src_tok_emb, self.tgt_tok_emb = nn.Embedding(vocab, emb), nn.Embedding(vocab, emb)
        self.positional_encoding, self.scale = PositionalEncoding(emb, dropout=0.0), math.sqrt(emb)

    def embedded(self, tokens, table):
        return self.positional_encoding(table(tokens.long()) * self.scale)

    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        outs = self.transformer(
            self.embedded(src, self.src_tok_emb), self.embedded(trg, self.tgt_tok_emb), src_mask, tgt_mask, None,
            src_padding_mask, tgt_padding_mask, memory_key_padding_mask,
        )  # fmt: skip
        return self.generator(outs)

    def encode(self, src, src_mask):
        return self.transformer.encoder(self.embedded(src, self.src_tok_emb), src_mask)

    def decode(self, tgt, memory, tgt_mask):
        return self.transformer.decoder(self.embedded(tgt, self.tgt_tok_emb), memory, tgt_mask)


def generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones((sz, sz), device=DEVICE)) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))


def create_mask(src, tgt):
    src_mask = torch.zeros((src.shape[0], src.shape[0]), device=DEVICE)
    padding = lambda t: torch.zeros(t.shape, device=DEVICE).masked_fill((t == PAD_IDX), float("-inf")).transpose(0, 1)
    return src_mask, generate_square_subsequent_mask(tgt.shape[0]), padding(src), padding(tgt)


sentences = [[3, 4, 5], [6, 7], [5, 3, 4, 8], [8, 6, 3]]
src = nn.utils.rnn.pad_sequence([torch.tensor([BOS_IDX, *s, EOS_IDX]) for s in sentences], padding_value=PAD_IDX).to(
    DEVICE
)
tgt = nn.utils.rnn.pad_sequence(
    [torch.tensor([BOS_IDX, *s[::-1], EOS_IDX]) for s in sentences], padding_value=PAD_IDX
).to(DEVICE)
model = Seq2Seq(10)
fill(model, scale=0.2)
model = model.to(DEVICE)
loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD_IDX)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)


def train_epoch(model, optimizer):
    model.train()
    tgt_input, tgt_out = tgt[:-1, :], tgt[1:, :]
    src_mask, tgt_mask, src_padding, tgt_padding = create_mask(src, tgt_input)
    logits = model(src, tgt_input, src_mask, tgt_mask, src_padding, tgt_padding, src_padding)
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


steps = int(os.environ.get("STEPS", 4))
for epoch in range(1, steps + 1):
    print(f"Epoch: {epoch}, Train loss: {train_epoch(model, optimizer):.4f}")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    torch.save({"epoch": steps, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    checkpoint = torch.load(path, map_location=DEVICE, weights_only=True)
again = Seq2Seq(10).to(DEVICE)
print(again.load_state_dict(checkpoint["model"]))
resumed = torch.optim.Adam(again.parameters(), lr=0.5)
resumed.load_state_dict(checkpoint["optimizer"])
for epoch in range(checkpoint["epoch"] + 1, checkpoint["epoch"] + 3):
    print(f"Epoch: {epoch}, Train loss: {train_epoch(again, resumed):.4f}")
again.eval()
with torch.no_grad():
    memory = again.encode(src[:, :1], torch.zeros(src.shape[0], src.shape[0], device=DEVICE))
    ys = torch.ones(1, 1).fill_(BOS_IDX).type(torch.long).to(DEVICE)
    for _ in range(4):
        out = again.decode(ys, memory, generate_square_subsequent_mask(ys.size(0)).type(torch.bool) * 0.0)
        prob = again.generator(out.transpose(0, 1)[:, -1])
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(prob.argmax(1).item())], dim=0)
print("prob", ["%.3f" % v for v in prob[0, :4].tolist()])
