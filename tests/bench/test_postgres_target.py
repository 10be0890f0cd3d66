"""A server as a target: connection strings, facts without secrets, and its capabilities."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import dbdyno
from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres, open_target
from dbdyno.bench.postgres.shown_settings import shown_value
from waiting import until

SPEC_KEYS = {
    *("host", "hostaddr", "port", "user", "password", "dbname", "options", "application_name", "connect_timeout_s"),
    *("sslmode", "sslsni", "sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version"),
    *("channel_binding", "require_auth", "liveness"),
}


def test_an_embedded_target_gives_the_load_its_socket(own: Postgres) -> None:
    spec = own.conninfo()
    assert own.engine is not None
    assert own.is_embedded
    assert set(spec) == SPEC_KEYS
    assert spec["host"] == str(own.engine.socket_dir)
    assert (spec["port"], spec["user"], spec["password"]) == (own.engine.port, "postgres", None)


def test_a_connection_string_gives_concrete_values(engine: EmbeddedPostgres) -> None:
    uri = f"postgresql://postgres:{engine.password}@127.0.0.1:{engine.port}/postgres?sslmode=disable"
    for dsn in (uri, make_conninfo("", **engine.tcp_conninfo(), sslmode="disable")):
        target = Postgres.open(dsn)
        spec = target.conninfo()
        assert not target.is_embedded
        assert (spec["host"], spec["port"], spec["password"], spec["sslmode"]) == (
            *("127.0.0.1", engine.port, engine.password),
            "disable",
        )


def test_environment_and_passfile_are_resolved(
    engine: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passfile = tmp_path / "pass"
    passfile.write_text(f"127.0.0.1:{engine.port}:*:postgres:{engine.password}\n")
    passfile.chmod(0o600)
    for name, value in {
        "PGHOST": "127.0.0.1",
        "PGPORT": str(engine.port),
        "PGUSER": "postgres",
        "PGDATABASE": "template1",
        "PGPASSFILE": str(passfile),
        "PGOPTIONS": "-c work_mem=6MB",
    }.items():
        monkeypatch.setenv(name, value)
    spec = Postgres.open("").conninfo()
    assert (spec["dbname"], spec["password"]) == ("template1", engine.password)
    assert spec["options"] == "-c work_mem=6MB"


def test_a_service_file_is_honoured(engine: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{key}={value}" for key, value in engine.tcp_conninfo().items()]
    (tmp_path / "services").write_text("\n".join(["[lab]", *lines]) + "\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    assert Postgres.open("service=lab").conninfo()["port"] == engine.port


def test_of_several_hosts_the_one_that_answered_is_taken(engine: EmbeddedPostgres) -> None:
    given = {**engine.tcp_conninfo(), "host": "127.0.0.1,127.0.0.1", "port": f"1,{engine.port}"}
    target = Postgres.open(make_conninfo("", **given))
    assert target.conninfo()["port"] == engine.port
    with contextlib.closing(target.connect()) as conn:
        assert conn.info.port == engine.port


def test_hostaddr_is_where_the_load_goes(engine: EmbeddedPostgres) -> None:
    given = {**engine.tcp_conninfo(), "host": "some.name.invalid", "hostaddr": "127.0.0.1"}
    target = Postgres.open(make_conninfo("", **given))
    spec = target.conninfo()
    # The name is what a certificate is made out to.
    assert (spec["host"], spec["hostaddr"]) == ("some.name.invalid", "127.0.0.1")
    target.connect().close()


def test_another_engines_scheme_is_told_what_runs_here() -> None:
    with pytest.raises(TargetError, match="expected a PostgreSQL URL, found mysql://") as raised:
        Postgres.open("mysql://root:hunter2@127.0.0.1/d")
    assert "snap take" in str(raised.value.next_step)
    assert "hunter2" not in str(raised.value)


def test_an_option_from_the_environment_reaches_the_load(
    engine: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGREQUIREAUTH", "scram-sha-256")
    target = Postgres.open(make_conninfo("", **engine.tcp_conninfo()))
    assert target.conninfo()["require_auth"] == "scram-sha-256"
    assert target.libpq_parameters()["require_auth"] == "scram-sha-256"
    monkeypatch.setenv("PGREQUIREPEER", "postgres")
    refused = Postgres.open(make_conninfo("", **engine.tcp_conninfo()))
    assert "requirepeer" in str(refused.refusal("read"))
    with pytest.raises(TargetError, match="requirepeer"):
        refused.conninfo()


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:hunter2@127.0.0.1:1/d",
        "host=127.0.0.1 port=1 user=u dbname=d password=hunter2",
        "host=/nowhere password=hunter2",
        "postgresql://u:hunter2@/d?no_such=1",
        "password hunter2",
        "password='hunter2",
        'host="hunter2" x',
        "postgresql://u:hun ter2@hunter2:port/d",
        "\0hunter2",
    ],
)
def test_a_server_that_does_not_answer_is_one_clear_error_without_secrets(dsn: str) -> None:
    with pytest.raises(TargetError) as raised:
        Postgres.open(dsn)
    text = str(raised.value)
    assert "hunter2" not in text
    assert raised.value.next_step
    assert raised.value.__cause__ is None


def test_a_wrong_password_is_told_without_it(engine: EmbeddedPostgres) -> None:
    with pytest.raises(TargetError, match="password authentication failed") as raised:
        Postgres.open(make_conninfo("", **{**engine.tcp_conninfo(), "password": "hunter2"}))
    assert "hunter2" not in str(raised.value)


def test_nothing_that_is_shown_holds_the_password(engine: EmbeddedPostgres) -> None:
    target = Postgres.open(make_conninfo("", **engine.tcp_conninfo()))
    for shown in (target.safe_dsn, repr(target), repr(target.facts()), repr(vars(target).keys())):
        assert engine.password not in shown
    assert f"port={engine.port}" in target.safe_dsn


def test_facts_describe_the_server_and_its_machine(own: Postgres, others: Postgres) -> None:
    facts = own.facts()
    assert facts["version"].startswith("PostgreSQL ")
    assert facts["version_num"] >= 150000
    assert int(facts["system_identifier"]) > 0
    assert facts["started_at"].endswith("Z")
    assert facts["in_recovery"] is False
    assert facts["server_is_here"] is True
    assert facts["host_cpus"] >= 1
    settings = {one["name"]: one for one in facts["settings"]}
    assert settings["shared_buffers"]["value"] == "256MB"
    assert settings["shared_buffers"]["source"] == "configuration file"
    assert "work_mem" not in settings
    assert not {"application_name", "client_encoding"} & set(settings)
    seen = others.facts()
    assert (seen["owned"], facts["owned"]) == (False, True)
    if Path("/proc/self/mountinfo").exists():
        assert seen["data_file_system"] == facts["data_file_system"]


def test_a_plain_role_gets_the_facts_that_it_may_see(plain: Postgres) -> None:
    facts = plain.facts()
    assert facts["version_num"] >= 150000
    assert facts["settings"]
    assert "data_file_system" not in facts


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("primary_conninfo", "host=a password=hunter2", "(hidden)"),
        ("archive_command", "curl -u me:hunter2 ...", "(hidden)"),
        ("ssl_passphrase_command", "echo hunter2", "(hidden)"),
        ("my_ext.api_token", "hunter2", "(hidden)"),
        ("my_ext.url", "host=x PASSWORD = hunter2", "(hidden)"),
        ("primary_conninfo", "", ""),
        ("password_encryption", "scram-sha-256", "scram-sha-256"),
        ("work_mem", "4MB", "4MB"),
        ("work_mem", None, ""),
    ],
)
def test_settings_that_may_hold_a_secret_are_hidden(name: str, value: str | None, shown: str) -> None:
    assert shown_value(name, value) == shown


def test_a_connection_takes_its_limits(own: Postgres) -> None:
    with contextlib.closing(own.connect(statement_timeout_ms=50, lock_timeout_ms=40, read_only=True)) as conn:
        row = conn.execute("select current_setting('statement_timeout'), current_setting('lock_timeout')").fetchone()
        assert row == ("50ms", "40ms")
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("select pg_sleep(5)")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            conn.execute("create table never ()")
    with contextlib.closing(own.connect(autocommit=False)) as conn:
        assert conn.autocommit is False


def test_what_can_run_is_told_as_a_sentence(own: Postgres, plain: Postgres) -> None:
    for kind in ("read", "write", "schema", "redo"):
        assert own.refusal(kind) is None
    assert plain.refusal("write") is None
    assert plain.refusal("schema") == "the role 'plain user' may not create a schema in this database"
    assert "not a kind of workload" in (own.refusal("juggle") or "")
    with contextlib.closing(own.connect()) as conn:
        conn.execute('alter role "plain user" set default_transaction_read_only to on')
    assert "read-only" in (plain.refusal("write") or "")


def test_a_standby_takes_no_writes(engine: EmbeddedPostgres, open_folder: Path) -> None:
    """An embedded server that is told to recover for ever is a standby."""
    with EmbeddedPostgres(open_folder, binaries=engine.binaries) as standby:
        standby.stop()
        (standby.data_dir / "standby.signal").touch()
        os.chown(standby.data_dir / "standby.signal", standby.data_dir.stat().st_uid, -1)
        with (standby.folder / "postgresql.conf").open("a") as conf:
            conf.write("restore_command = 'false'\n")
        standby.start()
        target = Postgres.from_engine(standby)
        assert target.refusal("read") is None
        for kind in ("write", "redo", "schema"):
            assert "standby" in (target.refusal(kind) or "")
        assert target.facts()["in_recovery"] is True


def test_an_embedded_server_that_died_shows_its_last_words(engine: EmbeddedPostgres) -> None:
    with EmbeddedPostgres(binaries=engine.binaries) as other:
        target = Postgres.from_engine(other)
        assert other.pid is not None
        os.kill(other.pid, signal.SIGQUIT)
        assert until(lambda: not other.running)
        with pytest.raises(TargetError, match=r"(?s)has ended.*immediate shutdown") as raised:
            target.connect()
        assert raised.value.next_step


def test_only_an_own_server_is_restarted(others: Postgres) -> None:
    with pytest.raises(TargetError, match="restarts only engines that it started"):
        others.restart()


def test_open_target_ends_what_it_started_and_nothing_else(engine: EmbeddedPostgres) -> None:
    with open_target(make_conninfo("", **engine.conninfo())) as target:
        assert not target.is_embedded
    assert engine.running
    with open_target(settings={"work_mem": "9MB"}) as target:
        assert target.engine is not None
        folder = target.engine.folder
    assert not folder.exists()


def test_help_can_name_targets_without_loading_a_driver() -> None:
    script = (
        "import sys, dbdyno.bench, dbdyno.bench.guardian, dbdyno.bench.postgres.server,"
        " dbdyno.bench.postgres.settings, dbdyno.bench.postgres.watch, dbdyno.bench.doctor\n"
        "assert 'psycopg' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(dbdyno.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_every_public_name_can_be_had_from_the_package() -> None:
    import dbdyno.bench as room

    for name in room.__all__:
        assert getattr(room, name) is not None
    with pytest.raises(AttributeError):
        room.no_such_name  # noqa: B018
