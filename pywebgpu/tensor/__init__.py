"""The Tensor class and the functions that make and take tensors: torch's names over nodes of the graph."""
