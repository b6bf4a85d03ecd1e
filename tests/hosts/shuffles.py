"""Sums rows by every launch that shuffles in subgroups, and by its like without: `shuffles.py DEVICE RESULTS SHAPE...`.

Then a norm's gradients, of which those of its weights are added up while rows are walked, by launches of both kinds.
"""

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
from pywebgpu.kernels.templates.rows_walk import SHUFFLED
from tests.hosts.windows import numbers

SHAPES = [(1, 1000), (5, 37), (70, 256)]
NORMED = (37, 260)  # not as many rows as blocks have together, and lanes without a column
SPLITS = (2, 8, 64)  # lanes of a row: less than a subgroup has, as many, or more


def rows(device: Any, given: Any, problem: Problem, chosen: Launch, x: torch.Tensor) -> list[float]:
    """Sums, softmaxes and extremes of the rows of x, by one launch."""
    (template,) = [one for one in templates.load_all() if one.name == "rows"]
    device.target = replace(given, tuning={launch.case(template, problem): chosen})
    found = [x.sum(1), x.softmax(1), x.amin(1), torch.where(x < 0, x, float("nan")).amax(1).isnan().float()]
    return [number for tensor in found for number in tensor.reshape(-1).tolist()]


def norm(device: Any, given: Any, way: str) -> list[float]:
    """A norm's output and gradients, as on a GPU of few cores."""
    (template,) = [one for one in templates.load_all() if one.name == "rows"]
    limits = replace(given.limits, emulated=False, bindings=max(given.limits.bindings, 12))
    features = replace(given.features, kind="", cores=2)
    problem = Problem(NORMED, layout="blocks")
    launches = template.launches(problem, replace(given, limits=limits, features=features))
    chosen = next((one for one in launches if one.variant == way and one.split == 64), launches[0])
    tuning = {launch.case(template, problem): chosen}
    device.target = replace(given, tuning=tuning, limits=limits, features=features)
    x, weight, bias = (numbers(*shape).requires_grad_() for shape in (NORMED, NORMED[1:], NORMED[1:]))
    out = torch.nn.functional.layer_norm(x, NORMED[1:], weight, bias)
    found = torch.autograd.grad(out, (x, weight, bias), numbers(*NORMED))
    return [number for tensor in found for number in tensor.reshape(-1).tolist()]


def main(name: str, results: str, *shapes: str) -> None:
    torch.set_default_device(name)
    device: Any = devices.open_device(name)
    given = device.target
    (template,) = [one for one in templates.load_all() if one.name == "rows"]
    found: list[Any] = []
    for shape in [SHAPES[int(index)] for index in shapes]:  # by their numbers
        x, problem = numbers(*shape), Problem(shape, layout="along")
        for chosen in template.launches(problem, given):
            if chosen.variant == SHUFFLED and chosen.threads == 64 and chosen.split in SPLITS:
                plain = chosen._replace(variant="", each=())
                found.append([shape, chosen, *(rows(device, given, problem, one, x) for one in (chosen, plain))])
    norms = [norm(device, given, way) for way in ("", SHUFFLED)]
    Path(results).write_text(json.dumps([list(given.features.names), found, norms]))


if __name__ == "__main__":
    main(*sys.argv[1:])
