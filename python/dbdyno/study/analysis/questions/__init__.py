"""A file per question other than which of two arms is faster: its numbers and its verdict."""
