"""Rules that find causes in PostgreSQL's counters."""

from dbdyno.snapshot.causes.postgres import access, catalog, execution, load, objects, plans, server, settings, standbys
from dbdyno.snapshot.causes.postgres.reading import PostgresChange

__all__ = ["FAMILIES", "PostgresChange"]

FAMILIES = (objects, access, catalog, plans, execution, load, settings, server, standbys)
