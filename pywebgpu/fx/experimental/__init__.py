"""Further ways to trace."""
