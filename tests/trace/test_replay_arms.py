"""A captured run as the workload of a plan: every arm replays it from the same data, and its answers are compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from proxy_help import database, pgbench, place, proxied, through
from psycopg.conninfo import make_conninfo
from record_help import rows, session

from command_line import dbdyno, succeeded
from dbdyno.base.errors import PlanError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.study.plan.file import parse_plan
from waiting import until

ACCOUNTS = 1000
TABLES = [
    f"create table accounts as select i as aid, 0 as balance from generate_series(1, {ACCOUNTS}) i",
    "alter table accounts add primary key (aid)",
    "create table history (aid int, delta int, at timestamptz)",
]
TRANSFER = f"""\\set aid random(1, {ACCOUNTS})
begin;
update accounts set balance = balance + 1 where aid = :aid;
select balance from accounts where aid = :aid;
insert into history values (:aid, 1, now());
commit;
"""
SESSIONS, EACH = 2, 12


@pytest.fixture(scope="module")
def capture(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Capture a small load through the proxy; database `start` has its state before the load, `live` that after it."""
    folder = tmp_path_factory.mktemp("capture")
    for name in ("start", "live"):
        database(engine, name, *TABLES)
    script = folder / "transfer.sql"
    script.write_text(TRANSFER)
    with proxied(engine, folder / "run", binds=True) as it:
        where = {**place(engine, it), "dbname": "live"}
        pgbench(engine, where, "-n", "-M", "prepared", "-f", script, "-c", SESSIONS, "-j", 1, "-t", EACH)
    return folder / "run"


def plan(
    capture: Path, engine: EmbeddedPostgres, data: str, arms: str, blocks: int = 6, dbname: str = "postgres"
) -> Path:
    """Write a plan to the capture's folder."""
    path = capture.parent / "plan.toml"
    path.write_text(
        f'title = "captured"\ntarget = "{make_conninfo("", **{**engine.conninfo(), "dbname": dbname})}"\n'
        f'[workload]\nreplay = "run"\norder = "commit"\n{data}\n'
        f"[schedule]\nblocks = {blocks}\nwarmup_blocks = {int(blocks > 2)}\nseed = 7\n{arms}"
    )
    return path


def databases(engine: EmbeddedPostgres) -> set[str]:
    with session(engine) as own:
        return {name for (name,) in own.execute("select datname from pg_database").fetchall()}


def arm(name: str, **keys: Any) -> str:
    return "\n".join([f'[[arm]]\nname = "{name}"', *(f"{key} = {value}" for key, value in keys.items()), ""])


WAITS = arm("waits", settings="{commit_delay = 10000, commit_siblings = 0}") + arm(
    "off", settings='{synchronous_commit = "off"}'
)
"""Two arms: commits of the first wait for the disk and 10 ms before that, whatever the disk."""


def test_arms_replay_a_capture_and_the_faster_is_named(engine: EmbeddedPostgres, capture: Path, tmp_path: Path) -> None:
    before = databases(engine)
    path = plan(capture, engine, 'template = "start"', WAITS)
    said = " ".join(dbdyno("plan", "check", path).stdout.split())
    assert f"each turn replays {SESSIONS * EACH} transactions of {SESSIONS} session(s) at once" in said
    assert "before each turn 'start' is copied" in said
    succeeded("run", path, "--out", tmp_path / "runs")
    [run] = [one.parent for one in (tmp_path / "runs").glob("*/manifest.json")] or [tmp_path / "runs"]
    model = json.loads((run / "analysis.json").read_text())
    assert model["verdict"]["decision"] == "faster", model["verdict"]
    assert "off" in model["verdict"]["headline"]
    [gates] = [[gate for gate in model["gates"] if gate["code"] == "answers"]]
    assert [gate["ok"] for gate in gates] == [True, True], gates
    counted = rows(run, "select arm, block, count(*), sum(rows) from calls group by all")
    assert {(count, total) for _, _, count, total in counted} == {(SESSIONS * EACH, SESSIONS * EACH * 3)}
    assert len(counted) == 2 * 7
    assert databases(engine) == before
    with psycopg.connect(**{**engine.conninfo(), "dbname": "start"}) as own:
        assert own.execute("select count(*) from history").fetchone() == (0,), "the template is as it was"


@pytest.mark.soak
def test_a_run_that_was_killed_in_a_turn_goes_on_with_a_copy_made_anew(
    engine: EmbeddedPostgres, capture: Path, tmp_path: Path
) -> None:
    before, runs = databases(engine), tmp_path / "runs"
    path = plan(capture, engine, 'template = "start"', WAITS, blocks=4)
    command = [sys.executable, "-m", "dbdyno", "run", str(path), "--out", str(runs)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert until(lambda: list(runs.glob("*/blocks/b000002.json")))
    running.kill()
    running.communicate()
    assert until(lambda: databases(engine) == before), "the guardian drops the copy"
    [run] = list(runs.iterdir())
    kept = {one.name: one.stat().st_mtime_ns for one in (run / "blocks").glob("b00000[12].json")}
    succeeded("run", "--resume", run, "--out", runs)
    assert kept == {name: (run / "blocks" / name).stat().st_mtime_ns for name in kept}, "not run again"
    counted = rows(run, "select arm, block, count(*) from calls where block > 0 group by all")
    assert sorted(counted) == [(arm, block, SESSIONS * EACH) for arm in ("off", "waits") for block in range(1, 5)]
    [gates] = [[gate for gate in json.loads((run / "analysis.json").read_text())["gates"] if gate["code"] == "answers"]]
    assert [gate["ok"] for gate in gates] == [True, True], gates
    assert databases(engine) == before


def test_an_arm_that_answers_otherwise_gets_no_verdict(engine: EmbeddedPostgres, capture: Path, tmp_path: Path) -> None:
    other = arm("waits") + arm("lost", settings="{row_security = true}", before_sql='["select 1"]')
    setup = json.dumps([*TABLES, "delete from accounts where aid % 4 = 0"])
    before = databases(engine)
    done = dbdyno("run", plan(capture, engine, f"setup = {setup}", other, blocks=2), "--out", tmp_path / "runs")
    assert done.returncode == 1, done.stdout + done.stderr
    words = " ".join(done.stdout.split())
    assert "NO VERDICT" in words
    assert "other answers than in the capture" in words
    assert databases(engine) == before


@pytest.mark.parametrize("command", [("plan", "check"), ("run",)])
def test_a_capture_that_writes_wants_a_database_to_copy_before_anything_runs(
    engine: EmbeddedPostgres, capture: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """All blocks ran, and the verdict was: NO VERDICT, 100 % failed (25006)."""
    before, runs = databases(engine), tmp_path / "runs"
    out = ("--out", runs) if command == ("run",) else ()
    done = dbdyno(*command, plan(capture, engine, "", WAITS, blocks=2, dbname="start"), *out)
    assert (done.returncode, runs.exists()) == (2, False), done.stdout + done.stderr
    said = " ".join(done.stderr.split())
    turns = SESSIONS * EACH
    assert f"the capture writes in {2 * turns} of" in said
    assert "25006" in said
    assert 'next: add template = "' in said
    assert databases(engine) == before


def test_a_capture_that_only_reads_runs_in_the_database_itself(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    with proxied(engine, tmp_path / "run", binds=True) as it, through(engine, it) as connection:
        for number in range(20):
            connection.execute("select pg_sleep(0), %s", [number])
    done = dbdyno("plan", "check", plan(tmp_path / "run", engine, "", WAITS))
    assert (done.returncode, "sessions are read-only" in " ".join(done.stdout.split())) == (0, True), done.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[schedule]", "[load]\nsessions = 3\n[schedule]"), "sessions cannot be given for a captured run"),
        (("blocks = 6", 'blocks = 6\nturn = "2s"'), "turn cannot be given for a captured run"),
        (('replay = "run"', 'replay = "run"\nspeed = "slow"'), "'slow' is not a speed"),
        (('replay = "run"', 'replay = "run"\nscripts = [{text = "select 1;"}]'), "not both"),
        (('replay = "run"', 'builtin = "select-only"'), "is only for a replay"),
        (('template = "start"', 'template = "start"\nsetup = "select 1"'), "template or setup, not both"),
        (('name = "off"', 'name = "off"\nclient = "psycopg"'), "arms differ by settings and SQL"),
        (
            ('order = "commit"', 'order = "commit"\nspeed = "1"\n[verdict]\nmetric = "throughput"\n[workload.x]'),
            "unknown key",
        ),
    ],
)
def test_what_a_capture_has_of_its_own_cannot_be_given(change: tuple[str, str], said: str) -> None:
    text = (
        'title = "captured"\n[workload]\nreplay = "run"\norder = "commit"\ntemplate = "start"\n'
        f"[schedule]\nblocks = 6\n{WAITS}"
    )
    assert change[0] in text
    with pytest.raises(PlanError, match=r"plan\.toml:\d+") as error:
        parse_plan(text.replace(*change), Path("plan.toml"))
    assert said in str(error.value)


def test_with_think_times_the_mean_is_judged_and_throughput_refused() -> None:
    text = f'title = "captured"\n[workload]\nreplay = "run"\nspeed = "2"\n{WAITS}'
    read = parse_plan(text, Path("plan.toml"))
    assert (read.judge.headline, read.workload.speed) == ("mean", "2")
    with pytest.raises(PlanError, match="has the throughput of its capture"):
        parse_plan(f'{text}[verdict]\nmetric = "throughput"\n', Path("plan.toml"))


def test_a_template_that_cannot_be_copied_is_refused_before_anything_runs(
    engine: EmbeddedPostgres, capture: Path
) -> None:
    for template, said in (("nowhere", "there is no database"), ("postgres", "cannot be copied while")):
        done = dbdyno("plan", "check", plan(capture, engine, f'template = "{template}"', WAITS))
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
        assert "next:" in done.stderr
    model = plan(capture, engine, "", WAITS)
    done = dbdyno("plan", "check", model, "--target", "mariadb")
    assert (done.returncode, "captured run" in done.stderr) == (2, True), done.stderr
