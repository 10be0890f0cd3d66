"""Rehearsals: one's own statements on an old server and a new one; which become slower, fail or answer differently."""
