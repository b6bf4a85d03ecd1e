"""Names: a GPT reads two hundred names letter by letter, and makes up new ones."""

import os

import pywebgpu as torch
from pywebgpu import display, nn

STEPS = int(os.environ.get("STEPS", "300"))
TEXT = """
ada adam adele agnes aisha alan albert alice alina alma amara amelia amina amir amos ana andrea anna anton ari arthur
astrid august aurora bela ben benita bernard bianca bjorn bruno camila carl carla carmen cecilia celia chiara clara
claude cleo clio cora dalia damian dana daniel dario dora diana edgar edith elena eli elias elisa ella elsa emil emilia
emma enzo eric erika ernest esther eva ezra fabian farah fatima felix fiona flora francis frida gabriel georgia
gerald gloria grace greta hana hannah hans harold hector heidi helena henry hilda hugo ian ida ilse ines ingrid irene
iris isa isaac isabel ivan ivy jacob jade jana jasmine joan joel jonas jora josef judith jules julia karim karin
kasper kira klara lara laila lea leah lena leo leon leona leonard lia lila lillian lina linus lisa livia lorenzo louis
lucas lucia luna lydia magnus maia malik manuel mara marco margot maria marian marina mario marta martin matilda
maura max maya mia milan mila mina mira miriam mona nadia nadine naomi nara natalia nelson nico nina noah noel nora
odessa olga oliver olivia omar oscar otto pablo paloma paul paula petra philip pia priya rafael rahel ramona rania
rebecca rhea rita robert roland romy rosa ruben ruth salma samira samuel sara selma serena silas silvia simon sofia
stella sven tamar tara thea theo tilda tina tobias ugo ulrich ursula valentin vera victor viola vivian walter wanda
wilma xenia yara yusuf yvonne zara zeno zoe zora
"""
NAMES = TEXT.split()
LETTERS = ".abcdefghijklmnopqrstuvwxyz"  # The point ends a name.
CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 10, 32, 4, 2, 32

torch.manual_seed(0)
tokens = torch.tensor([[LETTERS.index(c) for c in f".{name}".ljust(CONTEXT + 1, ".")] for name in NAMES])


class Block(nn.Module):
    """Attention to the letters so far, then a thought about each."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (part.reshape(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter, self.place = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def forward(self, tokens):
        x = self.letter(tokens) + self.place(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)


@torch.compile
def step():
    names = tokens[torch.randint(0, len(tokens), (BATCH,))]
    loss = nn.functional.cross_entropy(model(names[:, :-1]).flatten(0, 1), names[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


@torch.no_grad()
def invent(count, temperature=0.8):
    """New names: all at once, a letter a step."""
    written = torch.zeros(count, CONTEXT + 1, dtype=torch.long)
    for at in range(CONTEXT):
        chances = (model(written[:, :CONTEXT])[:, at] / temperature).softmax(-1)
        written[:, at + 1] = torch.multinomial(chances, 1).squeeze(1)
    rows = ["".join(LETTERS[one] for one in row[1:]) for row in written.tolist()]
    return [marked(row.split(".")[0]) for row in rows]


def marked(name):
    """A star says that the name is new: none of those it learns from."""
    return name.capitalize() + "*" * (name not in NAMES)


@torch.no_grad()
def expects(name):
    """A row for each letter of a name, a column for each that may come next: the brighter, the likelier."""
    chances = model(torch.tensor([[LETTERS.index(c) for c in f".{name}"]])).softmax(-1)[0]
    said = f"what it expects after each letter of {name}"
    return display.image(chances, low=0, scale=15, rows=f".{name}", columns=LETTERS, title=said)


with display.Live("Names", every=1) as live:
    for at in range(STEPS):
        live.log(loss=step())
        if at % 50 == 0:
            live.show(expects("marina"), f"after {at} steps: {', '.join(invent(8))} (* is new)")
    live.show(expects("marina"))

made = invent(24)
print(", ".join(made))
print(f"* new: {sum(name.endswith('*') for name in made)} of {len(made)}; it learnt from {len(NAMES)} names")
