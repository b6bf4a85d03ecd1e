"""The tables of tests/cases against PyTorch: one thin runner for each kind of table."""
