"""Helpers that every layer may use and that know no tensors: files, names, integers, shapes."""
