"""Rules over the counters of an Oracle instance.

They have never run against an instance; they are tested on made-up snapshots. The views have neither the rows of tables
nor the table of an index: growth is not reported, and an index that disappeared is tied to the plans that changed.
"""

from dbdyno.snapshot.causes.oracle import load, objects, server
from dbdyno.snapshot.causes.oracle.reading import OracleChange

__all__ = ["FAMILIES", "OracleChange"]

FAMILIES = (objects, load, server)
