"""Helpers for the tests of targets: the available servers, waiting, and reading settings."""

from __future__ import annotations

import contextlib

from dbdyno.bench.postgres.server import Postgres

KINDS = ("installed", "wheel")


def show(target: Postgres, name: str) -> str:
    """Return the value of a setting that is in effect in a new session."""
    with contextlib.closing(target.connect()) as conn:
        row = conn.execute("select current_setting(%s)", [name]).fetchone()
        assert row is not None
        return str(row[0])
