"""Functions from nodes to nodes, made of ops: broadcasting, promotion, activations, normalisations, losses.

The one home of what torch calls "functional": Tensor methods, nn and fallbacks of fused ops all call it.
"""
