"""Tests of arms with their own server: other programs, settings that need a restart, options of initdb."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.bench.postgres.bench import PostgresBench
from dbdyno.bench.postgres.binaries import find_binaries
from dbdyno.bench.postgres.observer import PostgresObserver
from dbdyno.bench.postgres.prepare import open_targets, prepare
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan, Server, plan_from_dict

HEAD = """\
title = "servers"
[workload]
scripts = [{name = "s", text = "select 1;"}]
setup = "create table if not exists t (i int)"
teardown = "drop table t"
[schedule]
blocks = 3
warmup_blocks = 1
turn = "60ms"
slice = "20ms"
[watch]
overhead_blocks = 0
"""
BIN = str(find_binaries().bindir)


def plan(arms: str) -> Plan:
    return parse_plan(HEAD + arms, Path("/plans/p.toml"))


def arms(*servers: str) -> str:
    return "".join(f'[[arm]]\nname = "{at}"\nserver = {server}\n' for at, server in enumerate(servers))


def test_each_arm_has_its_server_and_equal_ones_share_it():
    small, large = "{settings = {shared_buffers = '16MB'}}", "{settings = {shared_buffers = '64MB'}}"
    with open_targets(plan(arms(small, large, small))) as targets:
        assert targets[0] is targets[2]
        assert targets[0].safe_dsn != targets[1].safe_dsn
        sizes = []
        for target in targets:
            with target.connect() as conn:
                sizes.append(conn.execute("show shared_buffers").fetchone()[0])
    assert sizes == ["16MB", "64MB", "16MB"]


def test_options_of_initdb_make_another_cluster(tmp_path: Path):
    text = HEAD + arms(f'{{bindir = "{BIN}"}}', f'{{bindir = "{BIN}", initdb = ["--data-checksums"]}}')
    (tmp_path / "p.toml").write_text(text)
    done = dbdyno("run", "p.toml", "--seed", "1", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    assert sorted(target["data_checksums"] for target in manifest["targets"].values()) == ["off", "on"]
    assert manifest["switch"] == "slices", "two servers side by side need no restart"
    assert manifest["arms"][1]["changes"]["initdb"] == "--data-checksums"
    assert manifest["arms"][0]["changes"]["server"].startswith("PostgreSQL ")
    assert manifest["plan"]["arms"][0]["server"]["bindir"] == BIN
    for target in manifest["targets"]:
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(target)


def test_levels_of_a_factor_may_be_servers():
    made = plan(
        '[[factor]]\nname = "build"\nlevels = [{name = "old", server = {bindir = "../old/bin"}}, '
        '{name = "new", server = {bindir = "/opt/new/bin"}}]\n'
    )
    assert [arm.server for arm in made.arms] == [Server("/plans/../old/bin"), Server("/opt/new/bin")]
    assert plan_from_dict(made.to_dict()) == made


def test_a_folder_without_a_server_is_named_with_its_arm(tmp_path: Path):
    (tmp_path / "p.toml").write_text(HEAD + arms(f'{{bindir = "{tmp_path}"}}', "{}"))
    done = dbdyno("run", "p.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert f"arm '0' names {tmp_path}, which does not contain a working PostgreSQL server" in done.stderr


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        ('server = "/opt/pg"', "must be a table such as"),
        ('server = {bin = "/opt"}', "unknown key"),
        ('server = {settings = "x"}', "must be a table of settings"),
        ('dsn = "host=x"\nserver = {}', "either a dsn or a server that is started for it"),
    ],
)
def test_what_is_written_wrong_is_named(arm: str, said: str):
    with pytest.raises(PlanError) as error:
        plan(f'[[arm]]\nname = "a"\n{arm}\n')
    assert said in f"{error.value.message} {error.value.next_step}"


def test_a_run_from_elsewhere_says_which_programs_it_would_start():
    server = '{bindir = "/tmp/evil", initdb = ["-X", "/x"], settings = {archive_command = "rm -r x"}}'
    lines = PostgresBench.side_effects(plan(arms(server)), None)
    assert "runs the server programs in /tmp/evil (0)" in lines
    assert "runs initdb with -X /x (0)" in lines
    assert "starts the server with archive_command = rm -r x (0)" in lines


@pytest.mark.soak
def test_counters_of_several_servers_are_kept_apart():
    """Regression: both servers had one name, and the difference between them was reported as the writes of an arm."""
    made = plan(
        arms("{settings = {wal_level = 'minimal', max_wal_senders = 0}}", "{settings = {wal_level = 'logical'}}")
    )
    with open_targets(made) as targets:
        observer = PostgresObserver(prepare(made, targets, 1))
        with targets[0].connect() as conn:
            conn.execute("create table filled as select repeat('x', 500) from generate_series(1, 20000)")
        with observer.stretch(0, "1"), targets[1].connect() as conn:
            conn.execute("create table t as select 1 as i")
        alone = observer.metrics
        observer.metrics = []
        with observer.stretch(1, ""):
            pass
        observer.drop_connections()
    values: dict[tuple[str, str, str], list[float]] = {}
    for arm, _, one in alone:
        assert arm == "1"
        values.setdefault((one.source, one.object, one.metric), []).append(one.value)
    assert {len(own) for key, own in values.items() if key[0].startswith("pg_stat_wal")} == {2}
    before, after = values["pg_stat_wal", "", "wal_bytes"]
    assert 0 <= after - before < 5_000_000, "what the other server wrote is none of it"
    named = {one.object for _, _, one in observer.metrics if one.source == "pg_stat_wal"}
    assert named == {f"of {target.safe_dsn}" for target in targets}
