"""Reverse-mode differentiation of graphs: a walk that adds nodes, and the switch that turns remembering off."""
