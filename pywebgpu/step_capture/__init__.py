"""A whole step as one Program: what it reads and writes is found once, then Python hands over inputs and runs it."""
