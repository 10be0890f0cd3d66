"""The upgrade walkthrough (docs/how-to/upgrade.md): every command of the page, on real servers of two versions."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import model_in

from command_line import dbdyno, succeeded
from dbdyno.bench.postgres.binaries import Binaries, inspect, installed_folders, wheel_folders
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.trace.proxy.proxy_run import ProxyOptions, run_proxy
from server_binaries import binaries_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/upgrade.md"
BLOCK = re.compile(r"^```\n(.*?)^```$", re.M | re.S)
RESERVED_SINCE = 16


@dataclass(frozen=True)
class Servers:
    """Servers of the page: the old one with `app` and its copy, and the new one with `app`."""

    old: EmbeddedPostgres
    new: EmbeddedPostgres

    def dsn(self, name: str) -> str:
        """Return the connection string for a server name on the page."""
        engine, database = {"old-13": (self.old, "app"), "copy-13": (self.old, "copy"), "new-18": (self.new, "app")}[
            name
        ]
        return make_conninfo("", **{**engine.conninfo(), "dbname": database})


def commands() -> list[str]:
    """Return the commands of the page in their order."""
    return [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines() if line.strip()]


def oldest(new: Binaries) -> Binaries:
    """Return the oldest available server from which the newest one can take a database."""
    found = [
        one for one in inspect((*installed_folders(os.environ), *wheel_folders()), "here") if one.major < new.major
    ]
    if not found:
        pytest.skip("only one version of PostgreSQL is here: make setup-test gets an older one")
    return min(found, key=lambda one: one.major)


@pytest.fixture(params=["oldest here", pytest.param("13", marks=pytest.mark.soak)])
def servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    new = binaries_of("wheel")
    old = binaries_of("13") if request.param == "13" else oldest(new)
    monkeypatch.setenv("DBDYNO_PG_BIN", str(new.bindir))
    with EmbeddedPostgres(binaries=old) as before, EmbeddedPostgres(binaries=new) as after:
        for engine, names in ((before, ("app", "copy")), (after, ("app",))):
            with psycopg.connect(**engine.conninfo(), autocommit=True) as connection:  # type: ignore[arg-type]
                for name in names:
                    connection.execute(f"create database {name} template template0")
        yield Servers(before, after)


def test_every_command_of_the_page_works(
    servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    is_whole = request.node.callspec.params["servers"] == "13"
    if not is_whole:
        request.getfixturevalue("few_blocks")
    monkeypatch.chdir(tmp_path)
    listed = commands()
    assert [line.split()[0] for line in listed] == ["psql", "dbdyno", "pgbench", *["dbdyno"] * 6]
    schema, _, visits, look, copy, first, upgrade, second, index = listed
    run_sql(servers, schema)
    capture_load(servers, visits, tmp_path / "runs/monday", seconds=8 if is_whole else 2)
    for line in (look, copy) if is_whole else (copy,):
        succeeded(*words(servers, line))
    if is_whole:
        judged(servers, first, "20s", tmp_path / "first")
    succeeded(*words(servers, upgrade))
    shortened = second.replace("--replay 5min", "--replay 5s" if is_whole else "--replay 1s")
    shortened = shortened if is_whole else shortened.replace(" --speed 2,4", "")
    replay = judged(servers, shortened, "20s" if is_whole else "30s", tmp_path / "second")["replay"]
    assert isinstance(replay, dict)
    assert {row["side"] for row in replay["speeds"]} == {"old", "new"}
    assert (tmp_path / "verdict.md").read_text()
    if is_whole:
        rehearsed(servers, index, "10s", tmp_path / "index")


def judged(servers: Servers, line: str, length: str, out: Path) -> dict[str, object]:
    """Rehearse; check that an upgrade to 16 or later finds what the page shows: one failing statement and its cause."""
    model = rehearsed(servers, line, length, out)
    failing = [row for row in model["statements"] if row["decision"] == "fails"]  # type: ignore[attr-defined]
    with psycopg.connect(servers.dsn("copy-13")) as connection:
        is_older = connection.info.server_version < RESERVED_SINCE * 10000
    if is_older:
        (row,) = failing
        assert row["cause"]["sentence"].startswith("system_user is a reserved word on 18")
    else:
        assert failing == [], "the old server reserves the word, too"
    return model


def rehearsed(servers: Servers, line: str, length: str, out: Path) -> dict[str, object]:
    """Run a shortened rehearsal; return its model."""
    shortened = re.sub(r"--for \d+min", f"--for {length}", line)
    done = dbdyno(*words(servers, shortened), "--out", out, "--seed", "7")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return model_in(out)


def words(servers: Servers, line: str) -> list[str]:
    """Return the arguments of a command on the page, with this test's connection strings."""
    given = shlex.split(line)[1:]
    places = {f"postgresql://{name}/app": servers.dsn(name) for name in ("old-13", "copy-13", "new-18")}
    return [places.get(word, word) for word in given]


def run_sql(servers: Servers, line: str) -> None:
    """Execute the file that the page passes to psql, in one session."""
    (file,) = re.findall(r"-f (\S+)", line)
    with psycopg.connect(servers.dsn("old-13"), autocommit=True) as connection:
        connection.execute((ROOT / file).read_text().encode())


def capture_load(servers: Servers, line: str, out: Path, seconds: int) -> None:
    """The load of the page through the proxy, on a free port and for a shorter time."""
    out.parent.mkdir()
    with run_proxy(ProxyOptions("127.0.0.1:0", ("127.0.0.1", servers.old.port), binds=True), out) as it:
        own = {"-p": it.address.rpartition(":")[2], "-T": str(seconds), "-f": str(ROOT / "examples/upgrade/load.sql")}
        given = shlex.split(line)
        program = Postgres.from_engine(servers.new).engine
        assert program is not None
        command = [str(program.binaries.program("pgbench")), *given[1:]]
        for option, value in own.items():
            command[command.index(option) + 1] = value
        environment = {**os.environ, "PGUSER": "postgres", "PGPASSWORD": servers.old.password}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
