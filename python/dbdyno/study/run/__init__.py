"""Execution of plans: preparation, blocks one after the other, and restoring what was changed."""
