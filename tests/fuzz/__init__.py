"""Random programs, drawn the same in every run, on the library and on PyTorch."""
