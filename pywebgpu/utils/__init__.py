"""PyTorch's place for data loading and checkpointing."""
