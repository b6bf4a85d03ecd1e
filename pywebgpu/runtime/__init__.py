"""When work happens: what waits for its value, which Program computes it, and what happens when one fails."""
