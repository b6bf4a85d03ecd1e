"""Small claims about one part at a time; device cpu or none."""
