"""Passes from graph to graph: equal values, less work. ../pipeline.py has them in their order."""
