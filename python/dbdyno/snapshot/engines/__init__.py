"""Engines that snapshots can be taken of: what each one is asked, and what its counters mean."""
