"""A Cassandra as a bench: ways of loading a wide table."""
