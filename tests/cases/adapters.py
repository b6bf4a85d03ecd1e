"""A small Llama with adapters, and the losses that peft on PyTorch trains it to.

`python -m tests.cases.adapters` prints LOSSES anew, where transformers and peft are installed.
"""

from typing import Any

from tests.cases import language_models

FACTS: dict[str, Any] = {
    **language_models.SIZES,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 8,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
ADAPTERS: dict[str, Any] = {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj", "down_proj"]}
LEARNING_RATE, WEIGHT_DECAY = 1e-2, 0.1
TOKENS = [[(row * 7 + i * (3 + row)) % 50 for i in range(13)] for row in range(3)]
# Before each of 20 steps of AdamW over the same rows.
LOSSES = [
    5.822858, 4.723065, 3.882064, 3.231617, 2.700794, 2.30213, 1.958917, 1.694401, 1.478038, 1.305155,
    1.159751, 1.029474, 0.914404, 0.817617, 0.737448, 0.662661, 0.588584, 0.524609, 0.475395, 0.428728,
]  # fmt: skip
# What is trained: the shapes by their names in the model.
NAME = "model.layers.{}.{}.lora_{}.weight"
SHAPES = {
    NAME.format(layer, module, letter): (rows, 4) if letter == "B" else (4, columns)
    for layer in range(2)
    for module, rows, columns in (("self_attn.q_proj", 64, 64), ("self_attn.v_proj", 16, 64), ("mlp.down_proj", 64, 96))
    for letter in "AB"
}


def _losses() -> list[float]:
    import peft
    import torch
    import transformers

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**FACTS))
    shapes = {key: tuple(value.shape) for key, value in model.named_parameters()}
    weights = {key: torch.from_numpy(value) for key, value in language_models.weights(shapes).items()}
    model.load_state_dict(weights, strict=False)
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **ADAPTERS))
    adapters = {key: torch.from_numpy(value) for key, value in language_models.weights(SHAPES).items()}
    state = {f"base_model.model.{key[:-7]}.default.weight": value for key, value in adapters.items()}
    names = [key for key, value in model.named_parameters() if value.requires_grad]
    assert sorted(names) == sorted(state)
    model.load_state_dict(state, strict=False)
    trained = [value for value in model.parameters() if value.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    tokens, losses = torch.tensor(TOKENS), []
    for _ in range(20):
        logits = model(tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 6))
    return losses


if __name__ == "__main__":
    print(_losses())
