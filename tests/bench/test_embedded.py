"""An embedded server is created, private, restarted and removed, as root and as an ordinary user."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from target_help import KINDS, show

import dbdyno
from dbdyno.base.errors import TargetError
from dbdyno.bench.engine import os_user as accounts
from dbdyno.bench.engine.server_paths import SOCKET_NAME, SOCKET_PATH_MAX_BYTES, base_folder, socket_folder
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.undo import server_processes
from server_binaries import binaries_of

AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can become another user")


def test_it_runs_unprivileged_and_private(engine: EmbeddedPostgres) -> None:
    status = Path(f"/proc/{engine.pid}/status").read_text()
    uid = int(status.split("Uid:")[1].split()[0])
    assert uid != 0
    assert uid == engine.data_dir.stat().st_uid
    for private in (engine.data_dir, engine.socket_dir):
        assert private.stat().st_mode & 0o777 == 0o700
    assert engine.folder.stat().st_mode & 0o007 == 0
    environment = Path(f"/proc/{engine.pid}/environ").read_bytes().decode().split("\0")
    allowed = {*accounts.KEPT_VARIABLES, "LC_ALL", "HOME", ""}
    assert {line.partition("=")[0] for line in environment} <= allowed


def test_the_socket_is_open_to_us_and_tcp_asks_for_the_password(engine: EmbeddedPostgres) -> None:
    psycopg.connect(**engine.conninfo()).close()  # type: ignore[arg-type]
    psycopg.connect(**engine.tcp_conninfo()).close()  # type: ignore[arg-type]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(**{**engine.tcp_conninfo(), "password": "guess"})  # type: ignore[arg-type]


def test_durability_and_wal_are_postgresqls_own_defaults(engine: EmbeddedPostgres) -> None:
    with contextlib.closing(Postgres.from_engine(engine).connect()) as conn:
        rows = conn.execute(
            "select name from pg_settings where setting is distinct from boot_val and name = any(%s)",
            [
                [
                    *("fsync", "synchronous_commit", "full_page_writes", "wal_buffers"),
                    *("wal_sync_method", "wal_level", "wal_writer_delay", "wal_compression"),
                    *("wal_writer_flush_after", "commit_delay", "autovacuum", "max_wal_size"),
                ]
            ],
        ).fetchall()
    assert [name for (name,) in rows if name != "wal_buffers"] == []  # -1 shows as its computed size


def test_settings_of_the_caller_are_in_force_and_survive_quoting(open_folder: Path) -> None:
    odd = 'it\'s a \\ "prefix" %m '
    with EmbeddedPostgres(open_folder, {"work_mem": "7MB", "log_line_prefix": odd, "jit": False}) as engine:
        target = Postgres.from_engine(engine)
        assert engine.folder.parent == open_folder
        assert [show(target, name) for name in ("work_mem", "log_line_prefix", "jit")] == [
            "7MB",
            odd,
            "off",
        ]


def test_restart_keeps_port_data_and_comes_back_from_a_stop(own: Postgres) -> None:
    engine = own.engine
    assert engine is not None
    with contextlib.closing(own.connect()) as conn:
        conn.execute("create table kept as select 42 as answer")
    before = engine.pid
    own.restart()
    assert engine.pid != before
    engine.stop()
    assert engine.pid is None
    engine.restart()
    with contextlib.closing(own.connect()) as conn:
        assert conn.execute("table kept").fetchall() == [(42,)]
        conn.execute("drop table kept")


def test_a_setting_that_stops_the_start_shows_the_log_and_leaves_nothing(open_folder: Path) -> None:
    with (
        pytest.raises(TargetError, match=r'unrecognized configuration parameter "no_such"') as raised,
        EmbeddedPostgres(open_folder, {"no_such": 1}),
    ):
        pass
    assert "did not start" in raised.value.message
    assert "the setting that the log names" in (raised.value.next_step or "")
    assert list(open_folder.iterdir()) == []


def test_everything_is_gone_after_an_exception(open_folder: Path) -> None:
    with pytest.raises(KeyError), EmbeddedPostgres(open_folder) as engine:
        data = engine.data_dir
        raise KeyError
    assert list(open_folder.iterdir()) == []
    assert list(server_processes(data)) == []


def test_keep_leaves_the_folder_but_not_the_server(open_folder: Path) -> None:
    with EmbeddedPostgres(open_folder, keep=True) as engine:
        pass
    assert (engine.data_dir / "PG_VERSION").exists()
    assert list(server_processes(engine.data_dir)) == []


def test_a_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    short = Path("/var/tmp/dbdyno-0123456789ab")
    assert socket_folder(short) == short / "s"
    deep = tmp_path / ("d" * 90) / "dbdyno-0123456789ab"
    chosen = socket_folder(deep)
    assert len(os.fsencode(chosen)) + len(SOCKET_NAME) <= SOCKET_PATH_MAX_BYTES
    assert chosen.name == deep.name


def test_a_server_in_a_deep_folder_starts(open_folder: Path) -> None:
    deep = open_folder / ("d" * 90)
    deep.mkdir(mode=0o755)
    with EmbeddedPostgres(deep) as engine:
        assert show(Postgres.from_engine(engine), "port") == str(engine.port)
        socket = engine.socket_dir
    assert not socket.exists()


def test_facts_say_whether_it_is_in_memory(engine: EmbeddedPostgres) -> None:
    facts = engine.facts()
    assert facts["data_in_memory"] is False
    assert facts["engine_source"] in KINDS


@needs_root
def test_root_takes_the_next_account_and_never_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real = pwd.getpwnam

    def without(*missing: str) -> None:
        def getpwnam(name: str) -> pwd.struct_passwd:
            if name in missing:
                raise KeyError(name)
            return real(name)

        monkeypatch.setattr(accounts.pwd, "getpwnam", getpwnam)

    without("postgres")
    assert accounts.engine_account().name == "nobody"
    without("postgres", "nobody")
    with pytest.raises(TargetError, match="neither a user 'postgres' nor 'nobody'"):
        accounts.engine_account()


@pytest.mark.soak
@needs_root
def test_it_runs_as_nobody_too(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pwd.getpwnam("nobody")
    chosen = accounts.Account(nobody.pw_uid, nobody.pw_gid, "nobody", other=True)
    monkeypatch.setattr("dbdyno.bench.postgres.embedded.engine_account", lambda: chosen)
    with EmbeddedPostgres() as engine:
        assert engine.data_dir.stat().st_uid == nobody.pw_uid


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_binaries_out_of_reach_are_copied_not_opened(
    kind: str, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "installed":
        pytest.skip("an installed server's files are spread over the system")
    origin = binaries_of(kind).bindir.parent
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    for tree in (origin, origin.parent.parent / f"{origin.parent.name}.libs"):
        shutil.copytree(tree, private / tree.relative_to(origin.parent.parent), symlinks=True)
    cache = open_folder / "cache"
    monkeypatch.setenv("DBDYNO_CACHE", str(cache))
    monkeypatch.setenv("DBDYNO_PG_BIN", str(private / origin.parent.name / origin.name / "bin"))
    for _ in range(2):
        with EmbeddedPostgres() as engine:
            assert engine.binaries.bindir.is_relative_to(cache)
            assert show(Postgres.from_engine(engine), "server_version") == engine.binaries.version
    assert private.stat().st_mode & 0o777 == 0o700
    assert len(list(cache.iterdir())) == 1
    cache.chmod(0o777)
    with (
        pytest.raises(TargetError, match="can be written by others"),
        EmbeddedPostgres(),
    ):
        pass


@needs_root
def test_a_workdir_out_of_reach_is_refused_with_its_modes_untouched(open_folder: Path) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(TargetError, match="cannot enter"):
        base_folder(accounts.engine_account(), private)
    assert private.stat().st_mode & 0o777 == 0o700


@needs_root
def test_an_unreachable_tmpdir_falls_back_to_the_disk(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    account = accounts.engine_account()
    monkeypatch.setenv("TMPDIR", str(private))
    assert base_folder(account, None) == Path("/var/tmp")
    monkeypatch.setenv("TMPDIR", str(open_folder))
    assert base_folder(account, None) == open_folder


@needs_root
@pytest.mark.parametrize("kind", [KINDS[0], *(pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS[1:])])
def test_an_ordinary_user_runs_it_as_itself(kind: str, open_folder: Path) -> None:
    binaries = binaries_of(kind)
    nobody = pwd.getpwnam("nobody")
    python = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Path(psycopg.__file__).parents[1]
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": f"{Path(dbdyno.__file__).parents[1]}:{packages}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "DBDYNO_PG_BIN": str(binaries.bindir),
    }

    def run(*command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, *command],
            input=given,
            capture_output=True,
            text=True,
            env=environment,
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
            check=False,
        )

    child = Path(__file__).parent / "target_child.py"
    if not Path(python).exists() or run("-c", "import psycopg, dbdyno").returncode != 0:
        pytest.skip("another user cannot run this Python")
    done = run(str(child), "embedded", given=json.dumps({"workdir": str(home), "seconds": 0}))
    assert done.returncode == 0, done.stderr
    folder = Path(json.loads(done.stdout.splitlines()[1])["folder"])
    assert folder.parent == home
    assert list(home.iterdir()) == []
