"""PyTorch's own unit tests, unmodified, on this library: see command.py."""
