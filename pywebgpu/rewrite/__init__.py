"""Passes from graph to graph: the same values, less work."""

from pywebgpu.rewrite import lower, simplify

PASSES = (simplify.simplify, lower.lower, simplify.simplify)
