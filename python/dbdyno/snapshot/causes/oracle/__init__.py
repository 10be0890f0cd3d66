"""Rules that find causes in the counters of an Oracle instance.

They have never run against an instance; they are tested on made-up snapshots. The views show neither how many rows a
table has nor which table an index belongs to: growth is not reported, and an index that disappeared is related to the
plans that changed.
"""

from dbdyno.snapshot.causes.oracle import load, objects, server
from dbdyno.snapshot.causes.oracle.reading import OracleChange

__all__ = ["FAMILIES", "OracleChange"]

FAMILIES = (objects, load, server)
