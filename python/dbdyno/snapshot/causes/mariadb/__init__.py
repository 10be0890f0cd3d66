"""Rules over what MariaDB counts. Its performance schema has no sizes of tables and no reads by statement: rules say
what follows from rows examined and changed, from the status, and from the sampled sessions."""

from dbdyno.snapshot.causes.mariadb import load, objects, server
from dbdyno.snapshot.causes.mariadb.reading import MariadbChange

__all__ = ["FAMILIES", "MariadbChange"]

FAMILIES = (objects, load, server)
