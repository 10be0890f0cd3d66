"""A live PostgreSQL server as a bench: embedded or anybody's."""
