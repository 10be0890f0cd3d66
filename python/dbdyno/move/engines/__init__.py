"""Database engines that a move can read from or write to."""
