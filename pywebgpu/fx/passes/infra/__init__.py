"""What passes are, and their order."""
