"""A whole step as one Program: what the host does in it is found once, as data, and done again in each replay."""
