"""Tests of arms with their own MariaDB server, whose programs are in a folder that the plan names."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.mariadb.bench import MariaDBBench
from dbdyno.bench.mariadb.binaries import INSTALL, SERVER, Programs, find_programs, programs_in
from dbdyno.bench.mariadb.prepare import open_targets
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan

HEAD = """\
title = "servers"
[target]
dsn = "mariadb"
[workload]
scripts = [{name = "s", text = "select 1;"}]
"""


def plan(*servers: str) -> Plan:
    arms = "".join(f'[[arm]]\nname = "{at}"\nserver = {server}\n' for at, server in enumerate(servers))
    return parse_plan(HEAD + arms, Path("/plans/p.toml"))


def missing() -> str:
    try:
        find_programs({})
    except TargetError as error:
        return f"{error}; make setup-test installs it"
    return ""


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_programs_of_a_folder_make_and_run_an_arms_server():
    """Uses Debian's own files under the name of another build."""
    folder = find_programs({}).server.parent
    own = plan(f'{{bindir = "{folder}", settings = {{max_connections = "33"}}}}')
    with Guardian() as guardian, open_targets(own, guardian) as (target,):
        assert target.engine is not None
        with contextlib.closing(target.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("select @@basedir, @@max_connections")
            assert cursor.fetchall() == ((str(folder.parent), 33),)


@pytest.mark.parametrize("beside", ["bin", "scripts"])
def test_a_build_has_its_programs_in_one_tree(tmp_path: Path, beside: str):
    server, install = program(tmp_path / "bin" / SERVER), program(tmp_path / beside / INSTALL)
    found = programs_in(tmp_path / "bin", "arm 'x'")
    assert found == Programs(server, install, tmp_path)
    assert found.options == [f"--basedir={tmp_path}"]
    assert find_programs({"DBDYNO_MARIADB_BIN": str(tmp_path / "bin")}) == found


@pytest.mark.parametrize(("there", "named"), [((), INSTALL), ((SERVER,), INSTALL), ((INSTALL,), SERVER)])
def test_a_folder_without_a_mariadb_server_is_named_with_its_arm(tmp_path: Path, there: tuple[str, ...], named: str):
    for name in there:
        program(tmp_path / name)
    with pytest.raises(
        TargetError, match=f"arm '0' names .*which does not contain a MariaDB server: {named} is missing"
    ):
        programs_in(tmp_path, "arm '0'")


def test_a_plan_that_names_such_a_folder_ends_before_anything_runs(tmp_path: Path):
    (tmp_path / "p.toml").write_text(HEAD + f'[[arm]]\nname = "a"\nserver = {{bindir = "{tmp_path}"}}\n')
    done = dbdyno("run", "p.toml", cwd=tmp_path)
    assert done.returncode == 2 and f"arm 'a' names {tmp_path}" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.skipif(
    os.geteuid() != 0 or bool(missing()), reason=missing() or "only root starts servers as another user"
)
def test_programs_that_the_servers_user_cannot_run_are_named(tmp_path: Path):
    tmp_path.chmod(0o700)
    program(tmp_path / SERVER)
    program(tmp_path / INSTALL)
    with pytest.raises(TargetError, match=f"cannot run {tmp_path}/{SERVER}"):  # noqa: SIM117
        with Guardian() as guardian, open_targets(plan(f'{{bindir = "{tmp_path}"}}'), guardian):
            pass


def test_a_run_from_elsewhere_says_which_programs_it_would_start():
    own = '{bindir = "/tmp/evil", initdb = ["--x"], settings = {plugin_load_add = "evil.so"}}'
    lines = MariaDBBench.side_effects(plan(own), None)
    assert "runs the server programs in /tmp/evil (0)" in lines
    assert "runs mariadb-install-db with --x (0)" in lines
    assert "starts the server with plugin_load_add = evil.so (0)" in lines
