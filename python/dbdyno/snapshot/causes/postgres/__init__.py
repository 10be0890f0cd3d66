"""Rules over what PostgreSQL counts."""

from dbdyno.snapshot.causes.postgres import access, configured, load, objects, plans, server
from dbdyno.snapshot.causes.postgres.reading import PostgresChange

__all__ = ["FAMILIES", "PostgresChange"]

FAMILIES = (objects, access, plans, load, configured, server)
