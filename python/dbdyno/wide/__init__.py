"""Cassandra tables mapped to SQL tables: the map, queries over it, and moving rows in and out."""
