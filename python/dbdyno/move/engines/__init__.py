"""Engines that a move reads from or writes to."""
