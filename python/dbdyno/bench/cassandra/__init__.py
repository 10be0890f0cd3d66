"""A Cassandra cluster as a bench, for methods of loading a wide table."""
