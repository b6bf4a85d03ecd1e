"""Recurrent networks, transformers and convolutions over sequences, many of which change their length."""

from typing import Any

from tests.loops.start import Loop, Step, fill, floats, integers, numbers, text

V = 40


def _character_model(torch: Any, kind: str, layers: int) -> Step:
    nn = torch.nn
    embedding, cell = nn.Embedding(V, 32), getattr(nn, kind)(32, 64, layers, batch_first=True)
    parts = fill(torch, nn.ModuleList([embedding, cell, nn.Linear(64, V)]))
    optimizer = torch.optim.Adam(parts.parameters(), lr=2e-3)
    data, source = torch.tensor(text(2000, V)), numbers()

    def step() -> float:
        starts = source.integers(0, 1900, 16).tolist()
        x = torch.stack([data[i : i + 25] for i in starts])
        y = torch.stack([data[i + 1 : i + 26] for i in starts])
        out, _ = parts[1](parts[0](x))
        loss = nn.functional.cross_entropy(parts[2](out).reshape(-1, V), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 5.0)
        optimizer.step()
        return float(loss.item())

    return step


def character_rnn(torch: Any) -> Step:
    return _character_model(torch, "RNN", 1)


def character_lstm(torch: Any) -> Step:
    return _character_model(torch, "LSTM", 2)


def character_gru(torch: Any) -> Step:
    return _character_model(torch, "GRU", 1)


def names_rnn(torch: Any) -> Step:
    """A cell written by hand, a name of 4 to 9 characters a step."""
    nn = torch.nn

    class RNN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.i2h, self.h2h, self.h2o = nn.Linear(57, 64), nn.Linear(64, 64), nn.Linear(64, 18)
            self.softmax = nn.LogSoftmax(dim=1)

        def forward(self, line: Any, hidden: Any) -> tuple[Any, Any]:
            hidden = torch.tanh(self.i2h(line) + self.h2h(hidden))
            return self.softmax(self.h2o(hidden)), hidden

    model, criterion, source = fill(torch, RNN()), nn.NLLLoss(), numbers()

    def step() -> float:
        length = int(source.integers(4, 10))
        line = torch.zeros(length, 1, 57)
        for at, letter in enumerate(source.integers(0, 57, length).tolist()):
            line[at][0][letter] = 1
        category = torch.tensor([int(source.integers(0, 18))])
        hidden = torch.zeros(1, 64)
        model.zero_grad()
        for at in range(line.size()[0]):
            output, hidden = model(line[at], hidden)
        loss = criterion(output, category)
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-0.005)
        return float(loss.item())

    return step


def sine_cells(torch: Any) -> Step:
    """Two LSTMCells, a call a time step."""
    nn = torch.nn
    one, two, head = nn.LSTMCell(1, 32), nn.LSTMCell(32, 32), nn.Linear(32, 1)
    parts = fill(torch, nn.ModuleList([one, two, head]))
    optimizer = torch.optim.Adam(parts.parameters(), lr=1e-2)
    waves = torch.sin(torch.arange(41).float()[None, :] / 4 + floats(torch, 16, 1))

    def step() -> float:
        h, c, h2, c2 = (torch.zeros(16, 32) for _ in range(4))
        outputs = []
        for part in waves[:, :-1].split(1, dim=1):
            h, c = one(part, (h, c))
            h2, c2 = two(h, (h2, c2))
            outputs.append(head(h2))
        loss = nn.functional.mse_loss(torch.cat(outputs, dim=1), waves[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def packed_lstm(torch: Any) -> Step:
    """Sentences of other lengths in each batch, packed."""
    nn = torch.nn
    parts = nn.ModuleList([nn.Embedding(100, 32), nn.LSTM(32, 32, batch_first=True), nn.Linear(32, 1)])
    optimizer = torch.optim.Adam(fill(torch, parts).parameters(), lr=1e-3)
    source = numbers()

    def step() -> float:
        lengths = sorted(source.integers(3, 13, 8).tolist(), reverse=True)
        words = torch.tensor(source.integers(0, 100, (8, lengths[0])))
        labels = torch.tensor(source.integers(0, 2, 8).astype("float32"))
        packed = nn.utils.rnn.pack_padded_sequence(parts[0](words), torch.tensor(lengths), batch_first=True)
        _, (hidden, _) = parts[1](packed)
        loss = nn.functional.binary_cross_entropy_with_logits(parts[2](hidden[-1]).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def attention_translation(torch: Any) -> Step:
    """An encoder and a decoder of GRUs, a word a call, sentences of 4 to 7 words."""
    nn = torch.nn
    encoder, words = nn.GRU(32, 32), nn.Embedding(V, 32)
    decoder, targets, out = nn.GRU(64, 32), nn.Embedding(V, 32), nn.Linear(32, V)
    parts = fill(torch, nn.ModuleList([words, encoder, targets, decoder, out]))
    optimizer, source = torch.optim.SGD(parts.parameters(), lr=0.01), numbers()

    def step() -> float:
        read, written = (torch.tensor(source.integers(0, V, (int(source.integers(4, 8)), 1))) for _ in range(2))
        hidden, loss, states = torch.zeros(1, 1, 32), 0, []
        for word in read:
            state, hidden = encoder(words(word).view(1, 1, -1), hidden)
            states.append(state[0, 0])
        memory, before = torch.stack(states), torch.tensor([0])
        for word in written:
            scores = torch.softmax(memory @ hidden[0, 0], dim=0)
            context = (scores @ memory).view(1, 1, -1)
            output, hidden = decoder(torch.cat([targets(before).view(1, 1, -1), context], dim=2), hidden)
            loss = loss + nn.functional.cross_entropy(out(output[0]), word)
            before = word
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item()) / len(written)

    return step


def transformer_translation(torch: Any) -> Step:
    """nn.Transformer over padded sentences, whose longest changes."""
    nn = torch.nn
    model = nn.Transformer(32, 4, 2, 2, 64, dropout=0.0, batch_first=True)
    parts = fill(torch, nn.ModuleList([nn.Embedding(V, 32), nn.Embedding(V, 32), model, nn.Linear(32, V)]))
    optimizer, source = torch.optim.Adam(parts.parameters(), lr=1e-3), numbers()

    def step() -> float:
        n, m = source.integers(6, 10, 2).tolist()
        src, tgt = torch.tensor(source.integers(1, V, (8, n))), torch.tensor(source.integers(1, V, (8, m)))
        mask = nn.Transformer.generate_square_subsequent_mask(m - 1)
        out = model(parts[0](src), parts[1](tgt[:, :-1]), tgt_mask=mask, src_key_padding_mask=src == 0)
        loss = nn.functional.cross_entropy(parts[3](out).reshape(-1, V), tgt[:, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def encoder_classifier(torch: Any) -> Step:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    parts = fill(torch, nn.ModuleList([nn.Embedding(100, 32), encoder, nn.Linear(32, 4)]))
    optimizer = torch.optim.AdamW(parts.parameters(), lr=1e-3)
    words, labels = integers(torch, 100, 16, 20), integers(torch, 4, 16)

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(parts[2](parts[1](parts[0](words)).mean(dim=1)), labels)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def bags_of_words(torch: Any) -> Step:
    """EmbeddingBag with offsets; batches have other numbers of words."""
    nn = torch.nn
    bag, head = nn.EmbeddingBag(500, 64, mode="mean"), nn.Linear(64, 4)
    parts = fill(torch, nn.ModuleList([bag, head]))
    optimizer, source = torch.optim.SGD(parts.parameters(), lr=0.5), numbers()
    known = source.integers(5, 15, (16, 16)).tolist()

    def step() -> float:
        lengths = known[int(source.integers(0, 16))]
        words = torch.tensor(source.integers(0, 500, sum(lengths)))
        offsets = torch.tensor([0, *lengths[:-1]]).cumsum(dim=0)
        labels = torch.tensor(source.integers(0, 4, 16))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(bag(words, offsets)), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(parts.parameters(), 0.1)
        optimizer.step()
        return float(loss.item())

    return step


def tcn(torch: Any) -> Step:
    """Dilated causal convolutions with weight norm."""
    nn = torch.nn
    norm = nn.utils.parametrizations.weight_norm

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
            super().__init__()
            self.pad = 2 * dilation
            self.one = norm(nn.Conv1d(inputs, outputs, 3, padding=self.pad, dilation=dilation))
            self.two = norm(nn.Conv1d(outputs, outputs, 3, padding=self.pad, dilation=dilation))
            self.skip = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.one(x)[:, :, : -self.pad].contiguous())
            y = torch.relu(self.two(y)[:, :, : -self.pad].contiguous())
            return torch.relu(y + (x if self.skip is None else self.skip(x)))

    model = nn.Sequential(Block(2, 16, 1), Block(16, 16, 2), Block(16, 16, 4))
    parts = fill(torch, nn.ModuleList([model, nn.Linear(16, 1)]))
    optimizer = torch.optim.Adam(parts.parameters(), lr=2e-3)
    x, y = floats(torch, 16, 2, 50), floats(torch, 16, 1, seed=8)

    def step() -> float:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(parts[1](parts[0](x)[:, :, -1]), y)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


LOOPS = tuple(
    map(
        Loop,
        (
            character_rnn, character_lstm, character_gru, names_rnn, sine_cells, packed_lstm, attention_translation,
            transformer_translation, encoder_classifier, bags_of_words, tcn,
        ),
    )
)  # fmt: skip
