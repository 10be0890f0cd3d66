"""What the figures of a run draw."""
