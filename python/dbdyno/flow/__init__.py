"""Data flows: the plan as written beside the plan as executed."""
