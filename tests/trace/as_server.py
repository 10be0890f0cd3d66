"""Runs dbdyno as another user, such as that of a test's server: as_server.py UID GID CAPABILITIES ARGUMENTS.

CAPABILITIES are numbers with commas between, or `none`. All that the command needs is imported before: that user may
not be allowed to read our files.
"""

from __future__ import annotations

import ctypes
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

KEEP_CAPABILITIES = 8  # of <linux/prctl.h>
VERSION_3 = 0x20080522  # of <linux/capability.h>


def main() -> None:
    """Become that user, then run the command."""
    uid, gid, capabilities = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    kept = [] if capabilities == "none" else [int(number) for number in capabilities.split(",")]
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        _keep(libc, kept)
    sys.argv[1:4] = []
    entry()


def _keep(libc: ctypes.CDLL, capabilities: list[int]) -> None:
    """Drop all other capabilities of this process."""
    low, high = (sum(1 << number % 32 for number in capabilities if number // 32 == half) for half in (0, 1))
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    if libc.capset(header, sets) != 0:
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    main()
