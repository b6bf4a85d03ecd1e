"""The types of a graph: nodes, specs, kinds of ops; traversals of it, its fingerprint, its text."""
