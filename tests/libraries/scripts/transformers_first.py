"""A first program: a small Llama and a small BERT train, generate and are read again."""

import tempfile

import torch
from seeding import fill
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

print("imported", flush=True)

SIZES = dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
bare = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
llama = LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=2, max_position_embeddings=64))
bert = BertForMaskedLM(BertConfig(**SIZES, **bare))
ids = torch.arange(2 * 10).reshape(2, 10) * 7 % 61 + 3
for model in (llama, bert):
    fill(model)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(type(model).__name__, f"{loss.item():.6f}", flush=True)
prompt = dict(input_ids=ids[:1, :4], attention_mask=torch.ones(1, 4, dtype=torch.long))
print("generated", llama.eval().generate(**prompt, max_new_tokens=6, do_sample=False, pad_token_id=0).tolist())
with tempfile.TemporaryDirectory() as folder, torch.no_grad():
    llama.save_pretrained(folder)
    again = LlamaForCausalLM.from_pretrained(folder)
    print("reloaded", torch.equal(again(ids).logits, llama(ids).logits), again.device == llama.device)
