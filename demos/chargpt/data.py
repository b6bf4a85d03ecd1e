"""Text -> numbers: a corpus in plain English, its characters as a vocabulary, and batches that depend on the step.

Only the standard library is needed, so the same file serves a web page, where the text comes from the user.
"""

import hashlib
import random
import re
from collections.abc import Mapping

LONGEST = 101_000  # characters of the documentation: a page loads them before it trains
VALIDATION = 0.1  # the last tenth of a text is never trained on


class TextError(ValueError):
    """The text cannot be trained on. The message is one line for the user."""


class Corpus:
    """One text as character numbers, in a part to train on and a part to judge by.

    A batch is a pair of lists (batch, context): inputs, and the same moved on by one character. It depends on seed,
    part and step only, so that a run which was stopped meets the same batches as one which was not.

    Raises: TextError when the text is empty, or a part is too short for one context.
    """

    def __init__(self, text: str, *, context: int, seed: int) -> None:
        if not text.strip():
            raise TextError("the text is empty")
        self.vocabulary = sorted(set(text))
        self.context, self.seed = context, seed
        self.fingerprint = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        self._number = {character: number for number, character in enumerate(self.vocabulary)}
        numbers = self.encode(text)
        cut = len(numbers) - max(int(len(numbers) * VALIDATION), context + 1)
        if cut < context + 1:
            least = 2 * context + 2
            raise TextError(f"the text has {len(text)} characters; with a context of {context} it needs {least}")
        self.parts = {"train": numbers[:cut], "validation": numbers[cut:]}

    def encode(self, text: str) -> list[int]:
        """The number of each character. Raises TextError for one that the corpus does not have."""
        try:
            return [self._number[character] for character in text]
        except KeyError as error:
            raise TextError(f"the character {error.args[0]!r} does not occur in the text") from None

    def decode(self, numbers: list[int]) -> str:
        return "".join(self.vocabulary[number] for number in numbers)

    def batch(self, part: str, step: int, size: int) -> tuple[list[list[int]], list[list[int]]]:
        """`size` pieces of one part, from places drawn for this step."""
        numbers, length = self.parts[part], self.context
        draw = random.Random(f"{self.seed}/{part}/{step}")  # A string seeds by its SHA-512: the same on every host.
        starts = [draw.randrange(len(numbers) - length) for _ in range(size)]
        inputs = [numbers[start : start + length] for start in starts]
        targets = [numbers[start + 1 : start + length + 1] for start in starts]
        return inputs, targets


def read(path: str) -> str:
    """The text of a file. Raises TextError when it is missing or is not UTF-8."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise TextError(f"{path} is not a text in UTF-8") from None
    except OSError as error:
        raise TextError(f"cannot read {path}: {error.strerror}") from None


def python_documentation() -> str:
    """The prose of Python's own documentation, from the standard library. Raises TextError where that lacks it."""
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise TextError("this Python lacks pydoc_data, the default text; give another with --data FILE") from None
    text = prose(topics)[:LONGEST]
    return text[: text.rindex("\n") + 1]


def prose(topics: Mapping[str, str]) -> str:
    """Pages of reStructuredText, made by Sphinx -> their sentences: one paragraph a line, each once, in ASCII."""
    paragraphs = {}  # A dict keeps the order, and drops what several pages repeat.
    for name in sorted(topics):
        for block in re.split(r"\n\s*\n", topics[name]):
            paragraph = _plain(" ".join(block.split()))
            if _is_prose(paragraph):
                paragraphs[paragraph] = None
    return "\n".join(paragraphs) + "\n"


def _plain(text: str) -> str:
    """Typographic characters as ASCII, without the marks of lists and of emphasis."""
    text = text.translate(_ASCII).encode("ascii", "ignore").decode("ascii")
    text = re.sub(r"^(?:[*-]|\d+\.|\[\d+\]|Note:|Changed in version [\d.]+:|Added in version [\d.]+:) +", "", text)
    return re.sub(r"\*+([^*\s][^*]*)\*+", r"\1", text)


_ASCII = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})
_ASCII[0x2026] = "..."


def _is_prose(paragraph: str) -> bool:
    """Whole sentences: a capital first, a stop last, and hardly anything but letters between."""
    letters = sum(character.isalpha() or character in " ,." for character in paragraph)
    whole = len(paragraph) >= 60 and paragraph[0].isupper() and paragraph[-1] in ".:"
    return whole and letters > 0.93 * len(paragraph) and "::=" not in paragraph
