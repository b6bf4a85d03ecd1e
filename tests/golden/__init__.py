"""Texts kept in files: graphs after passes, WGSL, memory plans, wire JSON."""
