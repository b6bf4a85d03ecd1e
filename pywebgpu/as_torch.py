"""`import pywebgpu.as_torch` at the top of a program: `import torch` is pywebgpu there, and "cuda" is its device.

Requests for "cuda" and "mps" get the device that was chosen, which then says that name, and torch.cuda.is_available()
is True. A program that asks for no device makes its tensors on the chosen one; one that asks places them itself, and
what it does not place is on the host, as in PyTorch. Whether it will ask is looked up in its text: what it makes
before it asks is on the host, too. Where there is no text, it is so from when it asks.
"""

from pywebgpu.torch_api import torch_import

torch_import.install()
