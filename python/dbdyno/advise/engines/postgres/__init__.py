"""Evidence of a PostgreSQL: live, and of an interval of snapshots."""
