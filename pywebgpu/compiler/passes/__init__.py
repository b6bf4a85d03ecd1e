"""Passes from graph to graph: the same values, less work. A pass takes the roots and the toposorted graph."""

from pywebgpu.compiler.passes import attention_gradients, checks, lower, simplify

PASSES = (
    simplify.simplify,
    checks.check_integers,
    lower.lower,
    simplify.simplify,
    attention_gradients.pack,
)
