"""torch.version"""

__version__ = "0.1.0"
cuda: str | None = None
hip: str | None = None
debug = False
