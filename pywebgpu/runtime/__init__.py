"""When work happens: which values are pending, which Program computes them, and what happens when one fails."""
