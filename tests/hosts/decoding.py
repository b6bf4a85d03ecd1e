"""Products with quantised weights, rows of them, and gradients: `decoding.py DEVICE RESULTS FORMAT...`."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch
from pywebgpu.composites.quantized import FORMATS
from pywebgpu.models.quantized import Planes, QuantizedEmbedding, QuantizedLinear
from pywebgpu.nn import functional

ROWS, COLUMNS = 19, 512


def planes(format: str, device: str) -> Planes:
    """A weight of whose scales each is a small number, and all codes occur."""
    known = FORMATS[format]
    tensors = {}
    for number, plane in enumerate(known.planes):
        count = ROWS * COLUMNS // known.elements * plane.count
        numbers = torch.arange(count) * 37 % 251
        values = (numbers % 13 + 1) / 64 if plane.dtype is torch.float16 else (numbers + number).to(torch.int32) % 128
        tensors[plane.name] = values.to(plane.dtype).reshape(ROWS, -1).to(device)
    return Planes(format, tensors)


def outcome(format: str, device: str) -> list[list[float]]:
    weight, values = planes(format, device), []
    layer, table = QuantizedLinear(weight), QuantizedEmbedding(weight)
    for rows in (1, 3, 9):
        x = ((torch.arange(rows * COLUMNS) * 29 % 101).float() / 50 - 1).reshape(rows, COLUMNS)
        x = x.to(device).requires_grad_()
        y = layer(x)
        y.sum().backward()
        normed = layer(functional.rms_norm(x.detach(), (COLUMNS,)))
        values += [y.detach(), x.grad, normed * 2]
    values.append(table(torch.tensor([3, 0, ROWS - 1], device=device)))
    return [value.cpu().reshape(-1).tolist() for value in values]


def main(device: str, results: str, *formats: str) -> None:
    Path(results).write_text(json.dumps({format: outcome(format, device) for format in formats}))


if __name__ == "__main__":
    main(*sys.argv[1:])
