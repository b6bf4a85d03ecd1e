"""Families of models, made of configurations: a forward pass and three steps of training each."""

import torch
import transformers
from seeding import fill

print("imported")

TEXT = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
DECODER = TEXT | dict(num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT2 = dict(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
T5 = dict(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0)
VISION = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8
)
WHISPER = dict(
    vocab_size=64, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=16, max_source_positions=20, max_target_positions=32,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None,
)  # fmt: skip
MOE = DECODER | dict(num_local_experts=4, num_experts_per_tok=2)
MAMBA = dict(
    vocab_size=64, hidden_size=32, state_size=8, num_hidden_layers=2, pad_token_id=0, bos_token_id=1, eos_token_id=2
)
DISTIL = dict(vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64)
DEPTH = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)

ids = torch.arange(2 * 10).reshape(2, 10) * 7 % 61 + 3
mask = torch.ones(2, 10, dtype=torch.long)
mask[1, 7:] = 0
tokens = dict(input_ids=ids, attention_mask=mask)
pixels = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)
MODELS = {
    "BertForSequenceClassification": (transformers.BertConfig(**TEXT), tokens | dict(labels=torch.tensor([0, 1]))),
    "BertForMaskedLM": (transformers.BertConfig(**TEXT), tokens | dict(labels=ids)),
    "RobertaForMaskedLM": (transformers.RobertaConfig(**TEXT, max_position_embeddings=66), tokens | dict(labels=ids)),
    "DistilBertForSequenceClassification": (transformers.DistilBertConfig(**DISTIL), tokens | dict(labels=torch.tensor([0, 1]))),
    "GPT2LMHeadModel": (transformers.GPT2Config(**GPT2), tokens | dict(labels=ids)),
    "LlamaForCausalLM": (transformers.LlamaConfig(**DECODER), tokens | dict(labels=ids)),
    "MistralForCausalLM": (transformers.MistralConfig(**DECODER, sliding_window=4), tokens | dict(labels=ids)),
    "Qwen2ForCausalLM": (transformers.Qwen2Config(**DECODER), tokens | dict(labels=ids)),
    "Qwen3ForCausalLM": (transformers.Qwen3Config(**DECODER, head_dim=8), tokens | dict(labels=ids)),
    "GemmaForCausalLM": (transformers.GemmaConfig(**DECODER, head_dim=8), tokens | dict(labels=ids)),
    "MixtralForCausalLM": (transformers.MixtralConfig(**MOE, output_router_logits=True), tokens | dict(labels=ids)),
    "MambaForCausalLM": (transformers.MambaConfig(**MAMBA), dict(input_ids=ids, labels=ids)),
    "T5ForConditionalGeneration": (transformers.T5Config(**T5), tokens | dict(labels=ids)),
    "ViTForImageClassification": (transformers.ViTConfig(**VISION), dict(pixel_values=pixels, labels=torch.tensor([0, 1]))),
    "WhisperForConditionalGeneration": (
        transformers.WhisperConfig(**WHISPER),
        dict(input_features=torch.linspace(-1, 1, 2 * 16 * 40).reshape(2, 16, 40), labels=ids),
    ),
    "CLIPModel": (
        transformers.CLIPConfig(text_config=DEPTH | dict(max_position_embeddings=16, eos_token_id=2), vision_config=VISION, projection_dim=16),
        tokens | dict(pixel_values=pixels, return_loss=True),
    ),
}  # fmt: skip

for name, (config, inputs) in MODELS.items():
    for option in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "resid_pdrop",
                   "embd_pdrop", "attn_pdrop", "dropout_rate", "seq_classif_dropout", "activation_dropout"):  # fmt: skip
        if hasattr(config, option):
            setattr(config, option, 0.0)
    model = getattr(transformers, name)(config)
    fill(model)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for step in range(3):
        out = model(**inputs)
        optimizer.zero_grad()
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(out.loss.item())
    print(name, *(f"{loss:.5f}" for loss in losses), flush=True)
