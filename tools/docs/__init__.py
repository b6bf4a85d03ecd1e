"""Pages of the documentation that are made of the code: docs/conf.py has them written before Sphinx reads."""
