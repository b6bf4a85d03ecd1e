"""The tests. `python -m tests` runs them; README.md here says which folder holds what."""
