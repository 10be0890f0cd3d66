"""Rules that find causes in MariaDB's counters.

MariaDB's performance schema has neither sizes of tables nor reads by statement. Therefore the rules use rows examined
and changed, status variables, and sampled sessions.
"""

from dbdyno.snapshot.causes.mariadb import load, objects, server
from dbdyno.snapshot.causes.mariadb.reading import MariadbChange

__all__ = ["FAMILIES", "MariadbChange"]

FAMILIES = (objects, load, server)
