"""Rules over what an Oracle instance adds up. Never run against an instance: they are held to made snapshots.

The views have no rows of tables and no table of an index: growth is not told, and an index that is gone is tied to the
plans that changed.
"""

from dbdyno.snapshot.causes.oracle import load, objects, server
from dbdyno.snapshot.causes.oracle.reading import OracleChange

__all__ = ["FAMILIES", "OracleChange"]

FAMILIES = (objects, load, server)
