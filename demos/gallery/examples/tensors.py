"""Tensors: shapes, sums, products and gradients, of which every program is made."""

import pywebgpu as torch

a = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print("shape", tuple(a.shape), "dtype", a.dtype, "on", a.device)
print("sums of its columns", a.sum(dim=0))
print("each row without its mean", a - a.mean(dim=1, keepdim=True))
print("a product of matrices", a @ a.T)
print("what is larger than 2", a[a > 2])

# A tensor that requires a gradient remembers how results were made of it.
w = torch.tensor([1.0, -2.0], requires_grad=True)
loss = (w**2).sum() + w[0] * w[1]
loss.backward()
print("the gradient", w.grad)

# The editor shows what the last line is: of a tensor its statistics, and a small map.
torch.linspace(-1, 1, 12).reshape(-1, 1) * torch.linspace(-1, 1, 24)
