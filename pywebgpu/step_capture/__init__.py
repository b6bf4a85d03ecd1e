"""A whole step as one Program: one call records what it reads and writes, later ones pass inputs and run it."""
