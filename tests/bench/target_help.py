"""Help for the tests of targets: which servers there are, waiting, looking."""

from __future__ import annotations

import contextlib
import os

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.binaries import Binaries, find_binaries
from dbdyno.bench.postgres.server import Postgres
from skipped import skip_for

KINDS = ("installed", "wheel")


def binaries_of(kind: str) -> Binaries:
    try:
        return find_binaries({**os.environ, "DBDYNO_ENGINE": kind, "DBDYNO_PG_BIN": ""})
    except TargetError as error:
        skip_for(error)


def show(target: Postgres, name: str) -> str:
    """The value in effect in a new session."""
    with contextlib.closing(target.connect()) as conn:
        row = conn.execute("select current_setting(%s)", [name]).fetchone()
        assert row is not None
        return str(row[0])
