"""Engines whose evidence the rules can read from a live server or from snapshots."""
