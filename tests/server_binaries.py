"""Servers of PostgreSQL of several kinds and versions; a test that needs one that is not here is skipped."""

from __future__ import annotations

import os
from pathlib import Path

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.binaries import Binaries, find_binaries
from skipped import skipped_on

MATRIX = Path(__file__).parents[1] / "target" / "matrix"


def binaries_of(kind: str) -> Binaries:
    """Return the binaries of an installed server, of a wheel, or of a major version from `tools/matrix --fetch`."""
    with skipped_on(TargetError):
        if not kind.isdigit():
            return find_binaries({**os.environ, "DBDYNO_ENGINE": kind, "DBDYNO_PG_BIN": ""})
        folders = sorted(MATRIX.glob(f"{kind}.*/bin"))
        if not folders:
            raise TargetError(f"PostgreSQL {kind} is not here", next_step=f"tools/matrix --fetch {kind}")
        return find_binaries({**os.environ, "DBDYNO_PG_BIN": str(folders[-1])})
