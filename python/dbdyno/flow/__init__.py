"""Data flows: what an engine makes of the order in which a user wrote the steps."""
