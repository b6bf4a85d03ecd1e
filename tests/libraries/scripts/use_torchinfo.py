"""A model's layers as a table."""

import torch
from torchinfo import summary

print("imported")

model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)
)
table = summary(
    model,
    input_size=(2, 3, 8, 8),
    verbose=0,
    col_names=("input_size", "output_size", "num_params", "mult_adds", "trainable"),
)
print(table)
print(table.total_params, table.total_mult_adds, table.trainable_params)
lstm = summary(torch.nn.LSTM(4, 8, batch_first=True), input_size=(2, 5, 4), verbose=0)
print(lstm.total_params, lstm.total_output_bytes)
