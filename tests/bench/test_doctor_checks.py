"""The doctor: findings with their consequences, as superuser, as an ordinary role, and where reading fails."""

from __future__ import annotations

import contextlib

import psycopg
import pytest

from dbdyno.bench import doctor
from dbdyno.bench.check import Check, Outcome
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres


def examined(target: Postgres) -> dict[str, Check]:
    found = {check.name: check for check in doctor.examine(target)}
    assert list(found) == list(doctor.CHECKS), "a check is filed under its own name"
    return found


def test_a_superuser_on_an_own_engine_can_do_everything(own: Postgres) -> None:
    found = examined(own)
    for name in (
        *("version", "role", "primary or standby", "direct connection", "session settings"),
        *("server settings", "own schema", "WAL position", "durability", "statistics views"),
        *("waits of others", "server's machine", "data folder"),
    ):
        assert found[name].ok is True, found[name]
    assert found["server settings"].found == "embedded engine"


def test_on_another_server_a_superuser_may_alter_system(others: Postgres) -> None:
    check = examined(others)["server settings"]
    assert check.ok is True
    assert "if you allow it" in check.consequence


def test_a_plain_role_is_a_normal_case_with_consequences_and_steps(plain: Postgres) -> None:
    found = examined(plain)
    assert found["role"].found == "'plain user', no superuser"
    assert found["WAL position"].ok is True
    assert found["waits of others"].ok is False
    assert "GRANT pg_monitor" in found["waits of others"].next
    assert found["server settings"].ok is False
    assert "only session settings" in found["server settings"].consequence
    assert found["session settings"].found.endswith("for superusers")
    assert found["own schema"].ok is False
    assert found["data folder"].ok is None
    for check in found.values():
        assert check.ok is not False or (check.consequence and check.next), check


def test_nothing_is_changed(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        query = "select count(*) from pg_class union all select count(*) from pg_settings"
        before = conn.execute(query).fetchall()
        doctor.examine(own)
        assert conn.execute(query).fetchall() == before


def test_a_check_that_fails_fails_alone(own: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_target: object, _conn: object) -> Outcome:
        raise psycopg.errors.InsufficientPrivilege("permission denied for view")

    monkeypatch.setitem(doctor.CHECKS, "durability", broken)
    found = examined(own)
    assert found["durability"].ok is None
    assert "permission denied" in found["durability"].found
    assert found["clock"].found


def test_turned_off_durability_and_a_small_server_are_said_aloud(
    engine: EmbeddedPostgres,
) -> None:
    settings = {"fsync": False, "synchronous_commit": False, "max_connections": 10}
    with EmbeddedPostgres(settings=settings, binaries=engine.binaries) as weak:
        found = examined(Postgres.from_engine(weak))
    assert found["durability"].ok is False
    assert "fsync = off" in found["durability"].found
    assert found["connections"].ok is False


def test_a_pooler_is_suspected_where_process_numbers_differ(own: Postgres) -> None:
    own.pooled = True
    check = examined(own)["direct connection"]
    assert check.ok is False
    assert "pgbouncer" in check.found
