"""Mistakes that a type checker finds, each on a line that says which."""

import pywebgpu as torch
from pywebgpu import nn

x = torch.zeros(2, 3)
model = nn.Linear(3, 1)

x.reshpe(6)  # wrong: attr-defined
torch.zeroes(2)  # wrong: attr-defined
torch.optim.AdamW(model.parameters(), lrr=1)  # wrong: call-arg
nn.Linear(3)  # wrong: call-arg
nn.Linea(3, 1)  # wrong: attr-defined
torch.optim.SGD(model.parameters(), lr="fast")  # wrong: arg-type
nn.functional.relu(3)  # wrong: arg-type
torch.cat(x, "rows")  # wrong: arg-type
torch.sum(x, axes=0)  # wrong: call-arg
x.matmul(2)  # wrong: arg-type
x.sum(dim="rows")  # wrong: arg-type
print(x.shape.dims)  # wrong: attr-defined
n: str = x.shape[0]  # wrong: assignment
s: str = x.mean()  # wrong: assignment
print(torch.float33)  # wrong: attr-defined
torch.zeros(2, dtpe=torch.float32)  # wrong: call-arg
torch.arange(10, device=3.5)  # wrong: arg-type
