"""Pipelines over a tokenizer and models that are made here."""

import torch
from seeding import fill
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessor,
    pipeline,
)  # fmt: skip

print("imported")

words = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *"the a cat dog sat ran on under mat tree and or very happy sad".split(),
]
rules = Tokenizer(WordLevel({word: at for at, word in enumerate(words)}, "[UNK]"))
rules.pre_tokenizer = Whitespace()
rules.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=rules,
    pad_token="[PAD]",
    unk_token="[UNK]",
    cls_token="[CLS]",
    sep_token="[SEP]",
    mask_token="[MASK]",
)
sizes = dict(vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
config = BertConfig(**sizes)
print(tokenizer(["the cat sat", "a dog"], padding=True, return_tensors="pt").input_ids.tolist())


def made(kind, config):
    model = kind(config).eval()
    fill(model, scale=0.4)
    return model


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return round(float(value), 4) if hasattr(value, "__float__") else value


classify = pipeline(
    "text-classification", made(BertForSequenceClassification, config), tokenizer=tokenizer, device="cpu"
)
print(rounded(classify(["the cat sat", "a very sad dog"])), flush=True)
print(rounded(classify(["the cat sat", "a very sad dog"], batch_size=2, top_k=None)))
masked = pipeline("fill-mask", made(BertForMaskedLM, config), tokenizer=tokenizer, device="cpu")
print(rounded(masked("the [MASK] sat", top_k=2)), flush=True)
entities = pipeline("token-classification", made(BertForTokenClassification, config), tokenizer=tokenizer, device="cpu")
print(rounded(entities("the cat ran")), flush=True)
features = pipeline("feature-extraction", made(BertModel, config), tokenizer=tokenizer, device="cpu")
print(rounded(features("the cat"))[0][0][:4], flush=True)
gpt = made(
    GPT2LMHeadModel,
    GPT2Config(vocab_size=len(words), n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=2, eos_token_id=3),
)
tokenizer.pad_token = "[PAD]"
writer = pipeline("text-generation", gpt, tokenizer=tokenizer, device="cpu")
print(writer("the cat", max_new_tokens=5, do_sample=False), flush=True)
vit = made(
    ViTForImageClassification,
    ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8
    ),
)
try:
    processor = ViTImageProcessor(size={"height": 32, "width": 32})
except ImportError:
    print("images need torchvision")
else:
    from PIL import Image

    image = Image.fromarray((torch.arange(3 * 32 * 32).reshape(32, 32, 3) % 255).to(torch.uint8).numpy())
    see = pipeline("image-classification", vit, image_processor=processor, device="cpu")
    print(rounded(see(image)), flush=True)
