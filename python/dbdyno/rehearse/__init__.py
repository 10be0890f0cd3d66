"""Rehearsals: which of a user's statements become slower, fail or answer differently on a new server."""
