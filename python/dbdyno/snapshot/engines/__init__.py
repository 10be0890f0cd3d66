"""Engines of which snapshots can be taken: what is read from each one, and the meaning of its counters."""
