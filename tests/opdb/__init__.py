"""PyTorch's own samples of its operators, modules and optimizers, run through pywebgpu: see command.py."""
