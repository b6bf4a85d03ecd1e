"""PyTorch's modules that are a file each here: `torch.cuda` is `cuda.py`, which `pywebgpu.cuda` names as well."""
