"""Weight files and checkpoints: safetensors, PyTorch's own files, and state of any shape."""
