"""Sentences as vectors: a model of modules that are made here, trained by pairs."""

import tempfile

import torch
from seeding import fill
from sentence_transformers import SentenceTransformer, losses, models, util
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

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
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=rules,
    pad_token="[PAD]",
    unk_token="[UNK]",
    cls_token="[CLS]",
    sep_token="[SEP]",
    mask_token="[MASK]",
)
with tempfile.TemporaryDirectory() as folder:
    bert = BertModel(BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    ))  # fmt: skip
    fill(bert, scale=0.3)
    bert.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    word = models.Transformer(folder)
    pooling = models.Pooling(word.get_word_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[word, pooling, models.Normalize()], device="cpu")
    vectors = model.encode(["the cat sat", "a very happy dog", "the dog ran under the tree"], convert_to_tensor=True)
    print(vectors.shape, flush=True)
    print([[f"{value:.4f}" for value in row] for row in util.cos_sim(vectors, vectors).tolist()])
    print(type(model.encode("the cat")).__name__)
    hits = util.semantic_search(vectors[:1], vectors, top_k=2)
    print([(hit["corpus_id"], f"{hit['score']:.4f}") for hit in hits[0]])
    loss = losses.MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pairs = [model.tokenize(["the cat sat", "a dog ran"]), model.tokenize(["a very happy cat", "the dog ran"])]
    for step in range(3):
        value = loss(pairs, labels=None)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        print(step, f"{value.item():.5f}", flush=True)
    model.save(f"{folder}/model")
    again = SentenceTransformer(f"{folder}/model", device="cpu")
    print(
        "loaded",
        torch.allclose(
            again.encode("the cat", convert_to_tensor=True), model.encode("the cat", convert_to_tensor=True)
        ),
    )
