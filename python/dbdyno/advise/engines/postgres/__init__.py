"""Evidence of a PostgreSQL server: live, or from an interval of snapshots."""
