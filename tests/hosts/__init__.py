"""The tables of tests/cases on hosts where pytest, NumPy and PyTorch are not: Node, browsers."""
