"""Helpers for the tests of targets: the available servers, waiting, and reading settings."""

from __future__ import annotations

import contextlib
import os

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.binaries import Binaries, find_binaries
from dbdyno.bench.postgres.server import Postgres
from skipped import skipped_on

KINDS = ("installed", "wheel")


def binaries_of(kind: str) -> Binaries:
    with skipped_on(TargetError):
        return find_binaries({**os.environ, "DBDYNO_ENGINE": kind, "DBDYNO_PG_BIN": ""})


def show(target: Postgres, name: str) -> str:
    """Return the value of a setting that is in effect in a new session."""
    with contextlib.closing(target.connect()) as conn:
        row = conn.execute("select current_setting(%s)", [name]).fetchone()
        assert row is not None
        return str(row[0])
