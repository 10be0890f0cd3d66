"""Execution of plans: preparing the bench, running the blocks, and restoring what was changed."""
