"""A model as a bench, running in virtual time."""
