"""torch.version"""

own = "0.1.0"
__version__ = own  # torch_import puts the version of PyTorch before it.
cuda: str | None = None
hip: str | None = None
debug = False
