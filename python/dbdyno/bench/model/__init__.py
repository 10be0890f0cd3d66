"""A model as a bench: virtual time."""
