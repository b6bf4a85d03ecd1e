"""Sums rows by every launch that shuffles in subgroups, and by its like that does not: `shuffles.py DEVICE RESULTS`."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import pywebgpu as torch
from pywebgpu import devices
from pywebgpu.kernels import launch, templates
from pywebgpu.kernels.launch import Launch, Problem
from pywebgpu.kernels.templates.rows_kernel import SHUFFLED
from tests.hosts.windows import numbers

SHAPES = [(1, 1000), (5, 37), (70, 256)]
SPLITS = (2, 8, 64)  # lanes of a row: less than a subgroup has, as many, or more


def rows(device: Any, given: Any, problem: Problem, chosen: Launch, x: torch.Tensor) -> list[float]:
    """Sums, softmaxes and extremes of the rows of x, by one launch."""
    (template,) = [one for one in templates.ALL if one.name == "rows"]
    device.target = replace(given, tuning={launch.case(template, problem): chosen})
    found = [x.sum(1), x.softmax(1), x.amin(1), torch.where(x < 0, x, float("nan")).amax(1).isnan().float()]
    return [number for tensor in found for number in tensor.reshape(-1).tolist()]


def main(name: str, results: str) -> None:
    torch.set_default_device(name)
    device: Any = devices.open_device(name)
    given = device.target
    (template,) = [one for one in templates.ALL if one.name == "rows"]
    found: list[Any] = []
    for shape in SHAPES:
        x, problem = numbers(*shape), Problem(shape, layout="along")
        for chosen in template.launches(problem, given):
            if chosen.way == SHUFFLED and chosen.threads == 64 and chosen.split in SPLITS:
                plain = chosen._replace(way="", each=())
                found.append([shape, chosen, *(rows(device, given, problem, one, x) for one in (chosen, plain))])
    Path(results).write_text(json.dumps([list(given.features.names), found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
