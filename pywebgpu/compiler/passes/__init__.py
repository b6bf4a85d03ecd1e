"""Passes rewrite a graph into one with the same values and less work. ../pipeline.py lists them in order."""
