"""Models that are read from files: the Llama family, its tokenizers, and generation; BERT, and texts as vectors."""
