"""What is inside a model while it learns: where it looks, what it expects next, its weights and gradients.

It is computed beside the steps, and only while somebody looks: the steps' own programs stay what they are.
"""

import base64
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import train

import pywebgpu as torch

LONGEST = 24  # characters whose attention is shown
MAPS, CHOICES, LETTERS = 16, 8, 128  # at most
NEVER = -1e30  # the score of a character that comes later


async def look(run: train.Run) -> dict[str, Any]:
    """What the page draws: all of it computed first, and read at once."""
    numbers = run.corpus.parts["validation"][: min(LONGEST, run.settings.context)]
    values, heads, choices = torch.zeros(0, device=run.device), 0, 0
    rows = values.reshape(0, 0)
    groups = parts(run.model)
    with torch.no_grad():
        with suppress(Exception):  # The model may be the user's own, and made of other parts.
            maps, scores = attention(run.model, torch.tensor([numbers], device=run.device))
            best, which = scores.softmax(dim=-1).topk(min(CHOICES, len(run.corpus.vocabulary)))
            values = torch.cat([maps[:MAPS].flatten(), best, which.float()])
            heads, choices = min(MAPS, maps.shape[0]), best.shape[0]
            rows = run.model.character.weight[:LETTERS]
        sizes = [magnitude(tensors) for group in groups.values() for tensors in group]
        read = await torch.cat([values, torch.stack(sizes), rows.flatten()]).tolist_async()
    end = len(read) - rows.numel()
    cut = heads * len(numbers) ** 2
    shares, likely = read[cut : cut + choices], read[cut + choices : cut + 2 * choices]
    found = read[end - len(sizes) : end]
    return {
        "step": run.step,
        "text": run.corpus.decode(numbers),
        "heads": run.settings.heads,
        "maps": base64.b64encode(bytes(round(255 * share) for share in read[:cut])).decode(),
        "next": [(run.corpus.vocabulary[int(number)], share) for number, share in zip(likely, shares, strict=True)],
        "letters": list(run.corpus.vocabulary[: len(rows)]),
        "embedding": base64.b64encode(array("f", read[end:])).decode(),
        "sizes": list(zip(groups, found[::2], found[1::2], strict=True)),
    }


def attention(model: Any, characters: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """How much each character looks at each before it (heads of all layers, length, length); scores of the next."""
    length = characters.shape[1]
    place = torch.arange(length, device=characters.device)
    x = model.character(characters) + model.position(place)
    later = place.view(1, length) > place.view(length, 1)
    maps = []
    for block in model.blocks:
        inner = block.attention
        query, key, _ = inner.into(block.attention_norm(x))[0].split(x.shape[-1], dim=-1)
        query, key = (part.view(length, inner.heads, -1).transpose(0, 1) for part in (query, key))
        scores = query @ key.transpose(1, 2) * query.shape[-1] ** -0.5
        maps.append(torch.where(later, NEVER, scores).softmax(dim=-1))
        x = block(x)
    return torch.cat(maps), model.head(model.norm(x))[0, -1]


def parts(model: Any) -> dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]]:
    """By part of the model: its weights and their last gradients."""
    found: dict[str, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for name, parameter in model.named_parameters():
        words = name.split(".")
        group = f"layer {int(words[1]) + 1}" if words[0] == "blocks" else words[0]
        weights, gradients = found.setdefault(group, ([], []))
        weights.append(parameter)
        if parameter.grad is not None:
            gradients.append(parameter.grad)
    return found


def magnitude(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The root of their mean square; 0 where there are none."""
    if not tensors:
        return torch.zeros(())
    count = sum(tensor.numel() for tensor in tensors)
    total = sum((tensor.detach().square().sum() for tensor in tensors), torch.zeros(()))
    return (total / count).sqrt()
