"""Operations and parameters of a model."""

import thop
import torch

print("imported")

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4)
)
operations, parameters = thop.profile(model, inputs=(torch.ones(1, 3, 8, 8),), verbose=False)
print(operations, parameters, thop.clever_format([operations, parameters], "%.2f"))
recurrent = torch.nn.LSTM(4, 8, batch_first=True)
print(thop.profile(recurrent, inputs=(torch.ones(2, 5, 4),), verbose=False))
