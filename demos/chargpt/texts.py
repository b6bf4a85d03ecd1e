"""Texts to learn from, by name. One is verse, which a grammar makes: ballads that scan and rhyme."""

import random

import data

WORDS = {
    name: words.split()
    for name, words in {
        "name": "Ada Alan Clara Emma Hector Lucy Martin Nina Oscar Peter Robin Ruby Simon Tilly Walter Wendy",
        "short": "bear cat crow deer dog fox frog goat goose hare hen horse mole mouse owl seal whale wolf wren",
        "long": "badger beetle donkey falcon ferret hedgehog kitten lizard otter parrot pigeon rabbit raven robin "
        "spider turtle",
        "kind": "clever drowsy gentle golden hungry lonely lucky merry patient quiet silver sleepy solemn tiny weary "
        "wicked",
        "plain": "blue bright brown cold dark deep green grey high kind old pale red round slow small soft still warm "
        "white wild",
        "thing": "bell boat book cake cloak coin cup drum flute hat kite lamp map pear plum ring rope shoe spoon sword",
        "time": "Sunday Monday Tuesday evening morning summer autumn winter",
        "weather": "cloud frost mist moon night rain road sea sky snow stream sun wind wood",
    }.items()
}
RHYMES = [
    family.split()
    for family in (
        "sea tree bee key",
        "moon tune dune spoon",
        "hill mill rill till",
        "light night kite knight",
        "stone throne bone cone",
        "sand band hand land",
        "rain lane train crane",
        "door floor shore store",
        "snow crow bow row",
        "bell well shell dell",
        "star jar car bar",
        "house mouse grouse",
        "town crown gown clown",
        "bread bed shed sled",
        "king ring swing spring",
        "wall hall ball stall",
        "lake cake rake snake",
        "book brook hook cook",
        "boat coat goat moat",
        "bay hay tray sleigh",
    )
]
# Four beats and then three. "R" is what rhymes, "hero" and "friend" are those of the poem.
COUPLETS = {
    "{hero} and the {kind} {friend}": (
        "went walking to the R",
        "lay sleeping by the R",
        "came dancing round the R",
        "were singing to the R",
    ),
    "One {time} when the {weather} was {plain},": (
        "they waited by the R",
        "they wandered to the R",
        "they saw a {kind} R",
    ),
    "The {weather} was {plain}, the {weather2} was {plain2},": (
        "all round the {kind} R",
        "above the {kind} R",
        "beyond the {kind} R",
    ),
    "Said {hero} to the {kind} {friend},": (
        '"Who took my {thing} and R?"',
        '"Come with me to the R!"',
        '"I saw you by the R."',
        '"What lives behind the R?"',
    ),
    "And all the {kind} {friend} could say": (
        'was "Look beneath the R."',
        'was "Listen to the R."',
        'was "Never trust a R."',
    ),
    "Then {hero} took a {kind} {thing}": (
        "and hid it by the R",
        "and threw it at the R",
        "and swapped it for a R",
        "and put it in the R",
    ),
    "The {long} and the {kind} {short}": (
        "were waiting by the R",
        "had never seen a R",
        "looked up and saw the R",
        "sat down behind the R",
    ),
    "But when the {kind} {weather} was gone,": (
        "so was the {kind2} R",
        "there only was a R",
        "they found the {kind2} R",
    ),
    "And if the {weather} is {plain} and {plain2},": (
        "you still may see the R",
        "they dance around the R",
        "they sing it to the R",
    ),
    "So {hero} and the {friend} went home": (
        "and never lost the R",
        "and slept beside the R",
        "and dreamed about the R",
    ),
}


def named(name: str | None) -> str:
    """None: the documentation of Python; "verse"; or a file's path. Raises TextError."""
    if name == "verse":
        return verse()
    return data.read(name) if name else data.python_documentation()


def verse(seed: int = 1, characters: int = 120_000) -> str:
    """Poems with a title, as many as it takes."""
    draw = random.Random(f"verse {seed}")  # A string seeds by its SHA-512: the same on every host.
    poems, length = [], 0
    while length < characters:
        poems.append(poem(draw))
        length += len(poems[-1])
    return "".join(poems)[:characters]


def poem(draw: random.Random) -> str:
    """A title and two or three stanzas about two friends."""
    hero, friend, kind = (draw.choice(WORDS[name]) for name in ("name", "short", "kind"))
    first, *middle, last = COUPLETS
    couplets = [first, *draw.sample(middle, draw.choice((2, 4))), last]
    title = f"the {kind.title()} {friend.title()}\n"
    lines = [draw.choice((f"{hero} and {title}", f"T{title[1:]}"))]
    for at in range(0, len(couplets), 2):
        ends = draw.sample(draw.choice(RHYMES), 2)
        for begun, end, stop in zip(couplets[at : at + 2], ends, (";", "."), strict=True):
            words = _words(draw) | {"hero": hero, "friend": friend, "kind": kind}
            ended = draw.choice(COUPLETS[begun]).replace("R", end).format(**words)
            lines += [begun.format(**words), ended if ended.endswith('"') else ended + stop]
        lines.append("")
    return "\n".join(lines) + "\n"


def _words(draw: random.Random) -> dict[str, str]:
    """One word of each list, and where a line has two of a list, another."""
    found = {name: draw.choice(words) for name, words in WORDS.items()}
    for name in ("weather", "plain", "kind"):
        found[name], found[f"{name}2"] = draw.sample(WORDS[name], 2)
    return found
