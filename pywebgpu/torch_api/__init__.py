"""PyTorch's modules, one file each: `torch.cuda` is `cuda.py`, which is also `pywebgpu.cuda`."""
