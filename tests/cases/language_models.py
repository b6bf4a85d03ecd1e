"""Small language models with the logits that `transformers` on PyTorch gives for them.

`python -m tests.cases.language_models` prints LOGITS anew, where transformers is installed.
"""

import zlib

import numpy as np

SIZES = {
    "vocab_size": 50,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
    "rope_theta": 100.0,
}
_CAPS = {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}
_GEMMA3 = {
    "layer_types": ["sliding_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 1000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
    },
    "tie_word_embeddings": True,
}
# name: (model_type of transformers, what differs from SIZES)
MODELS = {
    "llama": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "llama tied": ("llama", {"tie_word_embeddings": True, "num_key_value_heads": 6}),
    "llama linear": ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0}}),
    "llama 3": ("llama", {"rope_parameters": _LLAMA3}),
    "mistral": ("mistral", {"sliding_window": 5}),
    "qwen 2": ("qwen2", {"use_sliding_window": False}),
    "qwen 3": ("qwen3", {"head_dim": 12, "num_attention_heads": 4, "use_sliding_window": False}),
    "gemma": ("gemma", {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "gemma 2": ("gemma2", {"sliding_window": 5, "query_pre_attn_scalar": 20, **_CAPS, "num_hidden_layers": 3}),
    "gemma 3": ("gemma3_text", {"sliding_window": 5, "query_pre_attn_scalar": 8, **_GEMMA3}),
}
# What SmolLM2-135M-Instruct in Q4_1 says after a prompt, greedily: the dequantised weights in transformers on PyTorch.
SMOLLM2_PROMPT = [1, 9690, 198, 2683, 359, 253, 5356]
SMOLLM2_TOKENS = [
    11173, 198, 11634, 1811, 1538, 7718, 30, 198, 1780, 314, 260, 8746, 282, 2967, 418, 2124, 582, 1680, 645, 36723,
    253, 3506, 13269, 216, 33, 32, 1711, 47, 2, 198, 1, 520, 9531, 198, 2068, 5482, 451, 1732, 28, 392, 737, 288,
    1771, 260, 8746, 282, 2967, 418, 2124, 582, 1680, 645, 36723, 253, 3506, 13269, 30, 198, 198, 2427, 36723, 253,
    3506, 13269,
]  # fmt: skip
IDS = [[3, 14, 15, 9, 26, 5, 35, 8, 49, 7, 9, 32, 38, 46]]
# The first eight logits of the last token.
LOGITS = {
    "llama": [-0.074658, -0.449662, 0.899613, -1.213812, 1.45346, -1.517701, -0.557248, -0.938497],
    "llama tied": [0.712311, -1.698988, 1.901157, -0.012317, 0.936099, -1.467021, -1.437256, 0.01447],
    "llama linear": [0.424777, 0.468987, -2.491046, -1.711543, -0.21794, -0.731933, 1.811674, -0.109369],
    "llama 3": [-1.405544, -0.754421, -0.36884, -1.680657, 0.399104, -0.889663, -1.148503, -0.737032],
    "mistral": [-0.557786, -0.4649, -1.446767, 2.00941, -1.188252, -2.44333, 3.132779, -0.495688],
    "qwen 2": [-0.036346, -1.611637, 1.219942, 0.061362, 1.220303, -2.273367, -0.206225, -1.310524],
    "qwen 3": [2.884561, -0.296174, -0.802439, -2.563016, -3.758839, -0.47522, -1.266767, -0.211786],
    "gemma": [0.89331, -2.949421, 3.663168, -2.867017, 4.473355, -3.537, -1.148353, -4.635274],
    "gemma 2": [-2.813357, -2.734818, -2.130023, 0.158406, 1.168339, 2.04457, 0.994625, -1.33633],
    "gemma 3": [0.532897, -3.003577, 3.29053, 3.172539, 4.013855, -2.50821, 2.471295, 2.444016],
}


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Weights that depend on their names and shapes alone."""
    arrays = {}
    for name, shape in shapes.items():
        draws = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(shape)
        arrays[name] = (draws * 0.2 + (1.0 if "norm" in name else 0.0)).astype(np.float32)
    return arrays


def _expected(name: str) -> list[float]:
    import torch
    import transformers

    model_type, changes = MODELS[name]
    config = transformers.AutoConfig.for_model(model_type, **{**SIZES, **changes})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    shapes = {key: tuple(value.shape) for key, value in model.named_parameters()}  # Those that are tied stand once.
    model.load_state_dict({key: torch.from_numpy(value) for key, value in weights(shapes).items()}, strict=False)
    with torch.no_grad():
        logits: torch.Tensor = model(torch.tensor(IDS)).logits
    return [round(float(value), 6) for value in logits[0, -1, :8]]


if __name__ == "__main__":
    for name in MODELS:
        print(f"    {name!r}: {_expected(name)},")
