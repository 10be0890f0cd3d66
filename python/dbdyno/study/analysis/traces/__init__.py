"""Comparison of two sets of traces: what differs, by how much, why, and whether it would differ again."""
