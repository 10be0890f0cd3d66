"""A live PostgreSQL server as a bench, either embedded or any server reached by a connection string."""
