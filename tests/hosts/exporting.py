"""A small training run that is exported on its way: run as a script, here or in Node, with the folder to write.

Beside the export it leaves what is needed to run on from there: inputs, and the losses and values that followed.
"""

import json
import sys

import pywebgpu as torch
from pywebgpu import nn

STEPS = 20


def inputs(step: int) -> tuple[list[list[float]], list[int]]:
    """A batch that depends on the step only."""
    return [[((7 * step + 3 * row + 5 * column) % 11 - 5) / 4 for column in range(8)] for row in range(6)], [
        (step + row) % 3 for row in range(6)
    ]


def main(folder: str) -> None:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.25), nn.Linear(16, 3)).to("webgpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

    @torch.compile
    def training(x, y, scale):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        (loss * scale).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    @torch.compile
    @torch.no_grad()
    def inference(x):
        model.eval()
        scores = model(x)
        model.train()
        return scores

    def given(step: int):
        x, y = inputs(step)
        return torch.tensor(x, device="webgpu"), torch.tensor(y, device="webgpu"), 1.0 + step / 8

    for step in range(3):
        training(*given(step))
    inference(given(0)[0])
    torch.save_program(folder, {"training": training, "inference": inference}, model, optimizer)
    losses = [training(*given(step)).item() for step in range(STEPS)]
    scores = inference(given(0)[0]).tolist()
    kept = {
        "batches": [[*inputs(step), 1.0 + step / 8] for step in range(STEPS)],
        "losses": losses,
        "scores": scores,
        "weight": model[3].weight.tolist(),
    }
    with open(f"{folder}/followed.json", "w", encoding="utf-8") as file:
        json.dump(kept, file)


if __name__ == "__main__":
    main(sys.argv[1])
