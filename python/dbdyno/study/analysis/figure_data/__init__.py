"""Data of the figures of a run."""
