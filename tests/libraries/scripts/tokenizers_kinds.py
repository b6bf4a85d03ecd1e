"""Kinds of tokenizers: by pairs of bytes, by pieces of words, by likelihood, whole words; cut, padded, in pairs."""

import json

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

print("imported")

LINES = ["The quick brown fox, it's 12 o'clock!", "naïve café: straße 你好 🙂", "  two  spaces\nand a line  ", ""]
texts = ["low lower lowest newer newest wide wider widest", "a quick brown fox jumps over the lazy dog"] * 3


def shown(name, tokenizer):
    for line in LINES:
        row = tokenizer.encode(line)
        print(name, row.ids, row.tokens, row.special_tokens_mask, row.type_ids, repr(tokenizer.decode(row.ids)))
    pair = tokenizer.encode(LINES[0], LINES[1])
    print(name, pair.ids, pair.type_ids, pair.sequence_ids, len(pair))


by_bytes = Tokenizer(models.BPE())
by_bytes.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
by_bytes.decoder = decoders.ByteLevel()
alphabet = pre_tokenizers.ByteLevel.alphabet()
options = dict(vocab_size=300, special_tokens=["<s>", "</s>", "<pad>"], show_progress=False)
by_bytes.train_from_iterator(texts, trainers.BpeTrainer(initial_alphabet=sorted(alphabet), **options))
by_bytes.post_processor = processors.TemplateProcessing(
    single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 1)]
)
print(len(alphabet), by_bytes.get_vocab_size(), json.loads(by_bytes.to_str())["model"]["merges"][:12])
shown("bytes", by_bytes)
by_bytes.enable_truncation(12, stride=2)
by_bytes.enable_padding(pad_id=2, pad_token="<pad>", pad_to_multiple_of=8)
for row in by_bytes.encode_batch([LINES[0], (LINES[2], LINES[0])]):
    print(row.ids, row.attention_mask, [part.ids for part in row.overflowing])

signs = "abcdefghijklmnopqrstuvwxyz12'!,"
vocabulary = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *signs,
    *(f"##{sign}" for sign in signs),
    "the",
    "quick",
    "##ick",
]
pieces = Tokenizer(models.WordPiece({token: number for number, token in enumerate(vocabulary)}, unk_token="[UNK]"))
pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
pieces.decoder = decoders.WordPiece()
pieces.add_special_tokens(vocabulary[:5])
pieces.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
shown("pieces", pieces)
for line in LINES:
    row = pieces.encode(line, "quick the")
    print(row.offsets, row.word_ids, row.char_to_token(6))
print(pieces.encode(["quickly", "the"], is_pretokenized=True).word_ids)
print(
    pieces.encode("the [MASK] fox").offsets,
    pieces.encode("the [MASK] fox").tokens,
    pieces.add_tokens(["fox!", AddedToken("dog", single_word=True)]),
)
print(pieces.normalizer.normalize_str("Café ÀB"), pieces.pre_tokenizer.pre_tokenize_str("it's a dog."))

likely = Tokenizer(
    models.Unigram([("<unk>", 0.0), ("▁", -2.0), ("▁a", -2.5), ("q", -4.0), ("uick", -3.0), ("▁quick", -3.5)], 0)
)
likely.pre_tokenizer = pre_tokenizers.Metaspace()
likely.decoder = decoders.Metaspace()
print([likely.encode(line).ids for line in ("a quick", "quick a", "aquick")], likely.decode([2, 5]))

words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "dog": 2}, "[UNK]"))
words.pre_tokenizer = pre_tokenizers.Sequence(
    [pre_tokenizers.Split(Regex(r"[,;]"), "removed"), pre_tokenizers.WhitespaceSplit()]
)
again = Tokenizer.from_str(words.to_str())
row = again.encode("a dog, a cat")
print(row.ids, row.tokens, again.token_to_id("dog"), again.id_to_token(1), again.get_vocab_size())
print(torch.tensor([row.ids]).sum().item(), again.encode(["a", "dog"], is_pretokenized=True).ids)
