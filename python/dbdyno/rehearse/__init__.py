"""Rehearsals: the user's statements on an old and a new server; which become slower, fail or answer differently."""
