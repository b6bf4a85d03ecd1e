"""Captured steps as files that train and infer without the Python that made them."""
