"""Replay of losses that other tools have reported: the first PostgreSQL case among the bugs that LazyFS reproduces.

Its report: a server that was stopped cleanly does not sync its file of statistics. After a power cut the next start
says "corrupted statistics file" and begins with empty statistics. No row is lost.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pytest
from device_mounts import require_fuse

from dbdyno.base.device_types import DeviceSpec
from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.cuts.ledger import payload_of
from dbdyno.cuts.plan import CutPlan
from dbdyno.cuts.postgres import PostgresCuts
from dbdyno.device.mounts import open_mount
from skipped import skipped_on

FETCHED = sorted((Path(__file__).resolve().parents[2] / "target" / "matrix").glob("1[4-9]*/bin"))
SEEDS = range(1, 12)
SYNCED_SINCE = 18
"""Major version from which PostgreSQL no longer reported corrupted statistics after these cuts."""


class StoppedPostgres:
    """A PostgreSQL server that repeatedly starts, inserts a row, stops cleanly, and then loses its power."""

    def __init__(self, guardian: Guardian) -> None:
        self.engine = PostgresCuts(CutPlan("a clean stop", "postgres"), guardian)
        self.engine.create()

    def said_after_cut(self, seed: int) -> tuple[str, int]:
        """Return what the server says at its start, and its rows; then add a row, stop it, and cut the power."""
        spec: DeviceSpec = {
            "device": "power cuts",
            "folder": str(self.engine.folder),
            "back": str(self.engine.back),
            "cuts": True,
        }
        mount = open_mount(spec)
        try:
            self.engine.start()
            with psycopg.connect(**self.engine._server.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
                ((rows,),) = connection.execute("select count(*) from rows").fetchall()
                said = self.engine._server.log_since_start()
                connection.execute("insert into rows values (%s, 0, %s)", (seed, payload_of(seed)))
            self.engine._server.stop()
            mount.cut(seed, 512)
        finally:
            self.engine.kill()
            mount.unmount(at_once=True)
        return said, rows

    def close(self) -> None:
        self.engine.close()


@pytest.mark.soak
@pytest.mark.parametrize("folder", [None, *FETCHED], ids=lambda folder: folder.parent.name if folder else "found")
def test_a_clean_stop_and_a_power_cut_lose_statistics_before_18_and_no_row(
    folder: Path | None, monkeypatch: pytest.MonkeyPatch
):
    require_fuse()
    if folder is not None:
        monkeypatch.setenv("DBDYNO_PG_BIN", str(folder))
    with skipped_on(TargetError):
        server = find_binaries()
    with Guardian() as guardian, contextlib.closing(StoppedPostgres(guardian)) as stopped:
        found = [stopped.said_after_cut(seed) for seed in SEEDS]
    corrupt = sum("corrupted statistics file" in said for said, _ in found)
    print(f"PostgreSQL {server.version}: {corrupt} of {len(SEEDS) - 1} starts say corrupted statistics file")
    assert (corrupt > 0) == (server.major < SYNCED_SINCE)
    assert [rows for _, rows in found] == list(range(len(SEEDS)))
