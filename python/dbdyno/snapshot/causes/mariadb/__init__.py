"""Rules over MariaDB's counters.

Its performance schema has neither sizes of tables nor reads by statement: the rules report what follows from rows
examined and changed, from status variables, and from sampled sessions.
"""

from dbdyno.snapshot.causes.mariadb import load, objects, server
from dbdyno.snapshot.causes.mariadb.reading import MariadbChange

__all__ = ["FAMILIES", "MariadbChange"]

FAMILIES = (objects, load, server)
