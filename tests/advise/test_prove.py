"""Advice from a real server becomes a plan, the plan runs on that server, and the result appears in later advice."""

from __future__ import annotations

import json
from pathlib import Path

import planted_faults as planted
import pytest
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.study.plan.file import read_plan

BAD = {"shared_buffers": "16MB", "effective_cache_size": "8MB", "fsync": "off"}


def test_an_advice_is_written_as_a_plan_run_and_remembered_for_its_engine(tmp_path: Path) -> None:
    (tmp_path / "own.sql").write_text("select count(*) from pg_class;\n")
    with EmbeddedPostgres(settings=BAD) as engine:
        dsn = make_conninfo("", **engine.conninfo())
        asked = ("advise", dsn, "--only", "planner", "--only", "durability")
        done = dbdyno(*asked, "--plan", "plans", "--workload", "own.sql", cwd=tmp_path)
        assert done.returncode == 0 and "fsync: not testable by a setting" in done.stderr, done.stderr
        (path,) = (tmp_path / "plans").iterdir()
        assert path.name.endswith("-effective_cache_size.toml")
        assert [arm.settings for arm in read_plan(path).arms] == [
            {"effective_cache_size": "8MB"},
            {"effective_cache_size": "32MB"},
        ]
        short = "blocks = 6\nwarmup_blocks = 1\nturn_transactions = 20\n\n[watch]\noverhead_blocks = 0"
        path.write_text(path.read_text().replace("blocks = 20", short).replace("sessions = 4", "sessions = 1"))
        proved = dbdyno("advise", "--prove", path, "--target", dsn, "--yes", cwd=tmp_path)
        assert proved.returncode in (0, 1), proved.stderr
        assert "comes from elsewhere or was changed" in proved.stderr and "select count(*)" in proved.stderr
        model = json.loads(dbdyno(*asked, "--format", "json", cwd=tmp_path).stdout)
        shown = dbdyno(*asked, cwd=tmp_path).stdout
    found = next(one for one in model["findings"] if one["rule"] == "effective_cache_size")
    (run,) = (tmp_path / "runs").iterdir()
    assert found["proof"]["counts"] and found["proof"]["run"] == run.name
    assert found["proof"]["verdict"] in ("proved", "refuted", "cannot tell")
    assert found["refuted"] == (found["proof"]["verdict"] == "refuted")
    assert f"by run {run.name}" in " ".join(shown.split())


SPILLS = "select count(*) from (select id, note from wide order by note, id desc offset 59000) sorted"
WIDE = (
    "create extension pg_stat_statements",
    "create table wide as select i as id, repeat(md5(i::text), 4) as note from generate_series(1, 60000) i",
    "vacuum analyze wide",
)


COLUMNS = 12
_SUM = " + ".join(f"(a{n} * {n + 2} - a{(n + 1) % COLUMNS}) % {n + 97}" for n in range(COLUMNS))
_ALL = " and ".join(f"a{n} > {-n}" for n in range(COLUMNS))
COMPILED = f"select sum({_SUM}) from figures where {_ALL}"
FIGURES = (
    "create table figures as select "
    + ", ".join(f"i % {100 + n} as a{n}" for n in range(COLUMNS))
    + " from generate_series(1, 700000) i",
    "vacuum analyze figures",
)
JIT = {
    "jit_above_cost": "1000",
    "jit_optimize_above_cost": "1000",
    "jit_inline_above_cost": "-1",
    "max_parallel_workers_per_gather": "0",
}


@pytest.mark.soak
def test_one_advice_is_proved_and_two_refuted_on_real_servers(tmp_path: Path) -> None:
    """work_mem against spills is proved. An effective_cache_size that no plan of the load feels is refuted by no
    difference; jit off by a loss: compiling takes a quarter of the statement, and compiled code saves more."""
    (tmp_path / "own.sql").write_text(f"{SPILLS};\n")
    (tmp_path / "catalog.sql").write_text("select count(*) from pg_class;\n")
    (tmp_path / "compiled.sql").write_text(COMPILED + ";\n")
    few = 'blocks = 16\nwarmup_blocks = 1\nturn = "1500ms"\n\n[watch]\noverhead_blocks = 0'
    settings = {
        **BAD,
        "shared_preload_libraries": "pg_stat_statements",
        "work_mem": "64kB",
        "track_io_timing": "on",
        **JIT,
    }
    with EmbeddedPostgres(settings=settings) as engine:
        work = [*([SPILLS] * 6), *([COMPILED] * 6)]
        planted.run(engine, *WIDE, *FIGURES, "set track_io_timing = on", *work)
        dsn = make_conninfo("", **engine.conninfo())
        said = {}
        for rule, script in (
            ("temp_files", "own.sql"),
            ("effective_cache_size", "catalog.sql"),
            ("jit", "compiled.sql"),
        ):
            asked = ("advise", dsn, "--only", rule)
            made = dbdyno(*asked, "--plan", rule, "--workload", script, cwd=tmp_path)
            path = next((tmp_path / rule).iterdir(), None)
            assert path is not None, made.stdout + made.stderr
            text = path.read_text().replace("blocks = 20", few).replace("sessions = 4", "sessions = 1")
            # a machine with others on it cannot tell 2 %; twice as fast would be seen there, and is not
            if rule == "effective_cache_size":
                text = text.replace("threshold = 0.02", "threshold = 1.0")
            path.write_text(text)
            proved = dbdyno("advise", "--prove", path, "--target", dsn, "--yes", cwd=tmp_path)
            assert proved.returncode in (0, 1), proved.stderr
            planted.run(engine, "select pg_stat_statements_reset()", *work)
            model = json.loads(dbdyno(*asked, "--format", "json", cwd=tmp_path).stdout)
            said[rule] = next(one for one in model["findings"] if one["rule"] == rule)
            print(rule, said[rule]["proof"])
    assert said["jit"]["proof"]["verdict"] == "refuted" and "slower" in said["jit"]["proof"]["headline"]
    assert said["jit"]["refuted"]
    assert said["temp_files"]["proof"]["verdict"] == "proved" and not said["temp_files"]["refuted"]
    assert said["effective_cache_size"]["proof"]["verdict"] == "refuted" and said["effective_cache_size"]["refuted"]
