"""Reverse-mode differentiation of graphs: a reverse walk that adds nodes, and the modes that turn recording off."""
