"""The package tokenizers: its classes in Python, over npm's @huggingface/tokenizers, which computes.

Where tokens stand in a text (`Encoding.offsets`) is known where words are parts of it as they are (spans.py). Trainers
train all models but Unigram.
"""

from pywebgpu.packages.tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from pywebgpu.packages.tokenizers.components import Regex
from pywebgpu.packages.tokenizers.encoding import Encoding, Token
from pywebgpu.packages.tokenizers.tokenizer import AddedToken, Tokenizer

__version__ = "0.23.3"  # whose functions these are
__all__ = [
    "AddedToken", "Encoding", "Regex", "Token", "Tokenizer", "decoders", "models", "normalizers", "pre_tokenizers",
    "processors", "trainers",
]  # fmt: skip
