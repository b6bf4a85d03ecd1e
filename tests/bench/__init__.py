"""Ladders of kernels: reference, naive, faster; each checked, then timed."""
