"""Runs dbdyno as the user that a test's server runs as, who has no capability: as_server.py UID GID ARGUMENTS.

All that the command needs is imported before: that user may not be allowed to read our files.
"""

from __future__ import annotations

import os
import sys

import psycopg  # noqa: F401

import dbdyno.cli.trace.record
import dbdyno.trace.record.looks
import dbdyno.trace.record.process
import dbdyno.trace.record.recording
import dbdyno.trace.record.texts
import dbdyno.trace.units  # noqa: F401
from dbdyno.entry import entry


def main() -> None:
    """Become that user, then run the command."""
    uid, gid = int(sys.argv[1]), int(sys.argv[2])
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    sys.argv[1:3] = []
    entry()


if __name__ == "__main__":
    main()
