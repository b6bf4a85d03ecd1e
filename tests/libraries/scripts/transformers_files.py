"""Models saved and loaded: whole, in parts, and in half precision."""

import tempfile

import torch
from seeding import fill
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
)

print("imported")

config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=64,
)
model = LlamaForCausalLM(config).eval()
fill(model)
ids = torch.arange(10)[None] * 5 % 64
with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
    print(f"{model(ids).logits.std().item():.5f}")
    model.save_pretrained(folder)
    again = LlamaForCausalLM.from_pretrained(folder)
    print(
        "whole",
        torch.equal(again(ids).logits, model(ids).logits),
        again.lm_head.weight.device == model.lm_head.weight.device,
        flush=True,
    )
    model.save_pretrained(f"{folder}/parts", max_shard_size="20kB")
    again = AutoModelForCausalLM.from_pretrained(f"{folder}/parts", low_cpu_mem_usage=True)
    print("parts", torch.equal(again(ids).logits, model(ids).logits), flush=True)
    half = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    print("half", half.dtype, f"{half(ids).logits.float().std().item():.2f}", flush=True)
    half = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", attn_implementation="eager")
    print("auto", half.dtype, f"{half(ids).logits.float().std().item():.5f}", flush=True)
    same = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    same.load_state_dict(model.state_dict())
    print("state", torch.equal(same(ids).logits, model(ids).logits))
    backbone = AutoModel.from_pretrained(folder)
    print("backbone", f"{backbone(ids).last_hidden_state.std().item():.5f}", flush=True)
    bert = BertModel(
        BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
    )
    fill(bert)
    bert.save_pretrained(f"{folder}/bert")
    again = AutoModel.from_pretrained(f"{folder}/bert")
    print("bert", torch.equal(again(ids).last_hidden_state, bert.eval()(ids).last_hidden_state), flush=True)
    larger = again.resize_token_embeddings(70)
    print(tuple(larger.weight.shape), again.num_parameters())
    with torch.device("meta"):
        empty = LlamaForCausalLM(config)
    print({parameter.device.type for parameter in empty.parameters()})
