"""A Cassandra cluster as a bench, for ways of loading a wide table."""
