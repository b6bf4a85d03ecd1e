"""Programs as text, run in three worlds: recorded as Python runs, compiled, and by PyTorch. All that can be seen is equal."""
