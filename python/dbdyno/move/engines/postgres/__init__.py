"""PostgreSQL as a source and as a target of a move."""
