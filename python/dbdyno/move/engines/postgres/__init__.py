"""PostgreSQL as the source and as the target of a move."""
