"""The module tokenizers.normalizers: what a text becomes before it is split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pywebgpu.packages.tokenizers import backend, components
from pywebgpu.packages.tokenizers.components import Component, Fields, Listed


class Normalizer(Component):
    """The base of all."""

    def normalize_str(self, sequence: str) -> str:
        """A text as this changes it."""
        return backend.part("normalizer", self).normalize(sequence)

    @staticmethod
    def custom(normalizer: Any) -> Normalizer:
        raise NotImplementedError("a normalizer written in Python is not possible here: combine those that there are")


class BertNormalizer(Normalizer):
    FIELDS: ClassVar[Fields] = {
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }


class NFC(Normalizer):
    """Unicode's canonical composition."""


class NFD(Normalizer):
    """Unicode's canonical decomposition."""


class NFKC(Normalizer):
    """Unicode's compatibility composition."""


class NFKD(Normalizer):
    """Unicode's compatibility decomposition."""


class Nmt(Normalizer):
    """What translation models take for spaces, and drop."""


class Lowercase(Normalizer):
    """Small letters."""


class StripAccents(Normalizer):
    """Letters without their accents, after a decomposition."""


class ByteLevel(Normalizer):
    """Bytes as letters."""


class Strip(Normalizer):
    FIELDS: ClassVar[Fields] = {"strip_left": True, "strip_right": True}
    ARGUMENTS: ClassVar[Mapping[str, str]] = {"left": "strip_left", "right": "strip_right"}


class Replace(Normalizer):
    FIELDS: ClassVar[Fields] = {"pattern": None, "content": ""}

    def _field(self, name: str, value: Any) -> Any:
        return components.pattern(value) if name == "pattern" else value


class Prepend(Normalizer):
    FIELDS: ClassVar[Fields] = {"prepend": "▁"}


class Precompiled(Normalizer):
    """A table of SentencePiece's, in base64."""

    FIELDS: ClassVar[Fields] = {"precompiled_charsmap": ""}

    def _field(self, name: str, value: Any) -> Any:
        import base64

        return base64.b64encode(value).decode() if isinstance(value, bytes) else value


class Sequence(Listed, Normalizer):
    FIELDS: ClassVar[Fields] = {"normalizers": ()}
    PARTS = "normalizers"


read = components.reader(Normalizer)


def unicode_normalizer_from_str(normalizer: str) -> Normalizer:
    """One of NFC, NFD, NFKC, NFKD by its name."""
    kinds = {"nfc": NFC, "nfd": NFD, "nfkc": NFKC, "nfkd": NFKD}
    if normalizer.lower() not in kinds:
        raise ValueError(f"{normalizer} is not a known unicode normalizer: there are {', '.join(kinds)}")
    return kinds[normalizer.lower()]()
