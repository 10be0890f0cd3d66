"""Settings of an arm: how they take effect, which are refused, and that they are restored."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from target_help import show

from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres import altered_settings
from dbdyno.bench.postgres.altered_settings import apply_server_settings, read_entries
from dbdyno.bench.postgres.permission import refusal
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.settings import (
    SettingChange,
    alter_system_sql,
    classify,
    connection_options,
    read_facts,
    session_sql,
)
from waiting import until


def classified(target: Postgres, **settings: Any) -> list[SettingChange]:
    with contextlib.closing(target.connect()) as conn:
        return classify(conn, settings)


def entries_of(target: Postgres, *names: str) -> dict[str, str | None]:
    with contextlib.closing(target.connect()) as conn:
        return read_entries(conn, read_facts(conn, names).values())


def test_each_setting_says_how_it_comes_into_force(own: Postgres) -> None:
    changes = classified(
        own,
        work_mem="8MB",
        log_min_duration_statement=5,
        max_wal_size="2GB",
        shared_buffers="64MB",
        log_disconnections=True,
    )
    assert {change.name: (change.how, change.before, change.value) for change in changes} == {
        "work_mem": ("session", "4MB", "8MB"),
        "log_min_duration_statement": ("session", "-1", "5"),
        "max_wal_size": ("reload", "1GB", "2GB"),
        "shared_buffers": ("restart", "256MB", "64MB"),
        "log_disconnections": ("connection", "off", "on"),
    }


def test_names_are_found_without_case_and_given_as_the_engine_writes_them(own: Postgres) -> None:
    (change,) = classified(own, datestyle="ISO, DMY")
    assert (change.name, change.how) == ("DateStyle", "session")


@pytest.mark.parametrize(
    ("name", "value", "message", "step"),
    [
        ("work_memm", "1", "no such setting", "did you mean work_mem?"),
        ("my.variable", "1", "no such setting", "belongs in the arm's SQL"),
        ("x'; drop table t; --", "1", "no such setting", "pg_settings"),
        ("nul\0byte", "1", "no such setting", "pg_settings"),
        ("work_mem", "8 apples", "expected a number", "in effect now: 4MB"),
        ("work_mem", "1kB", "outside 64kB", "in effect now: 4MB"),
        ("work_mem", "1'; select pg_sleep(60) --", "expected a number", "in effect now"),
        ("shared_buffers", "8kB", "outside 128kB", "in effect now: 256MB"),
        ("wal_level", "none", "expected one of minimal, replica, logical", "in effect now"),
        ("autovacuum", "maybe", "expected on or off", "in effect now"),
        ("search_path", "a\0b", "zero byte", "in effect now"),
        ("default_table_access_method", "no_such", "the engine refuses", ""),
        ("TimeZone", "Mars/Olympus", "the engine refuses", ""),
        ("server_version", "99", "fixed when the server is built", "compare two servers"),
        ("transaction_isolation", "serializable", "one transaction", "default_transaction_iso"),
        ("role", "none", "does not list this name", "in the arm's SQL"),
        ("application_name", "mine", "tell the arms apart", "remove the setting"),
        ("port", "1", "lose access to the server", "remove the setting"),
    ],
)
def test_what_cannot_be_set_is_refused_with_reason_and_next_step(
    own: Postgres, name: str, value: str, message: str, step: str
) -> None:
    with pytest.raises(TargetError) as raised:
        classified(own, **{name: value})
    assert message in str(raised.value)
    assert step in (raised.value.next_step or "")
    assert (raised.value.where or "").startswith("setting ")
    assert "\0" not in str(raised.value)


def test_classifying_changes_nothing(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        before = conn.execute("select name, setting from pg_settings order by name").fetchall()
        classify(conn, {"work_mem": "8MB", "enable_seqscan": False, "max_wal_size": "2GB"})
        with pytest.raises(TargetError):
            classify(conn, {"enable_seqscan": False, "TimeZone": "Mars/Olympus"})
        after = conn.execute("select name, setting from pg_settings order by name").fetchall()
    assert before == after


def test_session_sql_sets_exactly_the_text_that_was_given(own: Postgres) -> None:
    odd = 'it\'s \\ "odd"; drop table t; --'
    changes = classified(own, work_mem="8MB", search_path='"a, b", public')
    changes.append(SettingChange("my.text", odd, "session", "user", ""))
    with contextlib.closing(own.connect()) as conn:
        for statement in session_sql(changes):
            conn.execute(statement.encode())
        rows = conn.execute(
            "select current_setting('work_mem'), current_setting('search_path'), current_setting('my.text')"
        ).fetchall()
    assert rows == [("8MB", '"a, b", public', odd)]


def test_connection_options_carry_spaces_and_backslashes(own: Postgres) -> None:
    odd = "a b\\c"
    changes = [
        *classified(own, log_disconnections=True),
        SettingChange("my.text", odd, "connection", "backend", ""),
    ]
    given = {**own.libpq_parameters(), "options": connection_options(changes)}
    with contextlib.closing(psycopg.connect(**given)) as conn:
        row = conn.execute("select current_setting('my.text')").fetchone()
    assert row == (odd,)
    assert connection_options(classified(own, work_mem="8MB")) is None


def test_alter_system_writes_lists_element_by_element() -> None:
    assert alter_system_sql("work_mem", "8MB") == "ALTER SYSTEM SET \"work_mem\" TO '8MB'"
    assert alter_system_sql("a.b", None) == 'ALTER SYSTEM RESET "a"."b"'
    assert (
        alter_system_sql("shared_preload_libraries", 'a, "b, c"')
        == "ALTER SYSTEM SET \"shared_preload_libraries\" TO 'a', 'b, c'"
    )


def test_an_own_engine_is_reloaded_or_restarted_and_put_back_to_the_byte(own: Postgres) -> None:
    assert own.engine is not None
    before = own.engine.read_auto_conf()
    changes = classified(own, shared_buffers="64MB", max_wal_size="2GB", work_mem="8MB")
    with apply_server_settings(own, changes):
        assert show(own, "shared_buffers") == "64MB"
        assert show(own, "max_wal_size") == "2GB"
        assert show(own, "work_mem") == "4MB", "session settings are left to the sessions"
    assert own.engine.read_auto_conf() == before
    assert (show(own, "shared_buffers"), show(own, "max_wal_size")) == ("256MB", "1GB")


def test_a_reload_does_not_restart(own: Postgres) -> None:
    assert own.engine is not None
    pid = own.engine.pid
    with apply_server_settings(own, classified(own, checkpoint_timeout="11min")):
        assert show(own, "checkpoint_timeout") == "11min"
    assert show(own, "checkpoint_timeout") == "5min"
    assert own.engine.pid == pid


def test_a_value_that_the_engine_works_out_itself_counts_as_in_force(own: Postgres) -> None:
    with apply_server_settings(own, classified(own, wal_buffers=-1, shared_buffers="64MB")):
        assert show(own, "wal_buffers") == "2MB"


def test_a_value_with_which_the_server_does_not_start_is_undone(own: Postgres) -> None:
    assert own.engine is not None
    before = own.engine.read_auto_conf()
    huge = classified(own, shared_buffers="4000GB")
    with (
        pytest.raises(TargetError, match="could not map anonymous shared memory"),
        apply_server_settings(own, huge),
    ):
        pytest.fail("it cannot have started")
    assert own.engine.read_auto_conf() == before
    assert show(own, "shared_buffers") == "256MB"


def test_settings_are_put_back_after_an_exception(own: Postgres, others: Postgres) -> None:
    for target in (own, others):
        changes = classified(target, checkpoint_timeout="11min")
        with (
            pytest.raises(ZeroDivisionError),
            apply_server_settings(target, changes, allow_alter_system=True),
        ):
            assert show(target, "checkpoint_timeout") == "11min"
            raise ZeroDivisionError
        assert show(target, "checkpoint_timeout") == "5min"
        assert entries_of(others, "checkpoint_timeout") == {"checkpoint_timeout": None}


def test_on_another_server_the_entry_that_was_there_is_put_back(others: Postgres) -> None:
    with contextlib.closing(others.connect()) as conn:
        conn.execute("alter system set checkpoint_timeout to '420s'")
        conn.execute("alter system set unix_socket_directories to '/a, b', '/c'")
        conn.execute("alter system reset unix_socket_directories")
        conn.execute("select pg_reload_conf()")
        assert until(lambda: show(others, "checkpoint_timeout") == "7min")
        changes = classified(others, checkpoint_timeout="11min", max_wal_size="2GB")
        with (
            Guardian() as guardian,
            apply_server_settings(others, changes, guardian=guardian, allow_alter_system=True),
        ):
            assert len(guardian.pending) == 1
            assert show(others, "checkpoint_timeout") == "11min"
            assert entries_of(others, "checkpoint_timeout", "max_wal_size") == {
                "checkpoint_timeout": "11min",
                "max_wal_size": "2GB",
            }
        assert entries_of(others, "checkpoint_timeout", "max_wal_size") == {
            "checkpoint_timeout": "420s",
            "max_wal_size": None,
        }
        assert guardian.pending == ()
        conn.execute("alter system reset checkpoint_timeout")
        conn.execute("select pg_reload_conf()")
    assert until(lambda: show(others, "checkpoint_timeout") == "5min")


def test_another_server_is_reloaded_only_if_allowed_and_never_restarted(others: Postgres) -> None:
    changes = classified(others, checkpoint_timeout="11min")
    with (
        pytest.raises(TargetError, match="affects every user of this server") as raised,
        apply_server_settings(others, changes),
    ):
        pass
    assert "ALTER SYSTEM SET \"checkpoint_timeout\" TO '11min'" in (raised.value.next_step or "")
    changes = classified(others, shared_buffers="64MB")
    with (
        pytest.raises(TargetError, match="shared_buffers: needs a restart") as raised,
        apply_server_settings(others, changes, allow_alter_system=True),
    ):
        pass
    assert "ask a DBA to run ALTER SYSTEM SET" in (raised.value.next_step or "")
    assert entries_of(others, "checkpoint_timeout", "shared_buffers") == {
        "checkpoint_timeout": None,
        "shared_buffers": None,
    }


def test_others_edits_that_wait_for_a_reload_are_not_brought_into_force(others: Postgres) -> None:
    changes = classified(others, checkpoint_timeout="11min")
    with contextlib.closing(others.connect()) as conn:
        conn.execute("alter system set log_min_messages to 'error'")
        refused = refusal(others, conn, changes, allow_alter_system=True)
        assert refused is not None
        assert "other pending changes: log_min_messages" in str(refused)
        conn.execute("alter system reset log_min_messages")
        assert refusal(others, conn, changes, allow_alter_system=True) is None


def test_a_value_that_a_role_overrides_is_noticed_and_put_back(
    others: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(altered_settings, "IN_FORCE_S", 0.5)
    (change,) = classified(others, work_mem="9MB")
    as_reload = SettingChange("work_mem", "9MB", "reload", change.context, change.before)
    with contextlib.closing(others.connect()) as conn:
        conn.execute("alter role current_user set work_mem to '5MB'")
        try:
            with (
                pytest.raises(TargetError, match=r"work_mem is 5120kB \(from: user\), not 9MB"),
                apply_server_settings(others, [as_reload], allow_alter_system=True),
            ):
                pass
        finally:
            conn.execute("alter role current_user reset work_mem")
    assert entries_of(others, "work_mem") == {"work_mem": None}


def test_no_server_settings_need_no_right_and_no_guardian(plain: Postgres) -> None:
    with (
        Guardian() as guardian,
        apply_server_settings(plain, classified(plain, work_mem="8MB"), guardian=guardian),
    ):
        assert guardian.pid is None


def test_a_plain_role_may_vary_user_settings_only(plain: Postgres) -> None:
    (change,) = classified(plain, work_mem="8MB")
    assert change.how == "session"
    with pytest.raises(TargetError, match="the role 'plain user' may not change this setting") as raised:
        classified(plain, log_min_duration_statement=5)
    assert 'GRANT SET ON PARAMETER log_min_duration_statement TO "plain user"' in (raised.value.next_step or "")
    with pytest.raises(TargetError, match="may not see the setting"):
        classified(plain, shared_preload_libraries="x")


def test_a_granted_parameter_is_allowed(own: Postgres, plain: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        conn.execute('grant set on parameter log_min_duration_statement to "plain user"')
        (change,) = classified(plain, log_min_duration_statement=5)
        assert change.how == "session"


def test_a_plain_role_hears_which_grants_it_lacks(own: Postgres, plain: Postgres) -> None:
    changes = classified(plain, checkpoint_timeout="11min")
    with (
        pytest.raises(TargetError, match="may not change this setting for the server") as raised,
        apply_server_settings(plain, changes, allow_alter_system=True),
    ):
        pass
    step = raised.value.next_step or ""
    assert 'GRANT ALTER SYSTEM ON PARAMETER checkpoint_timeout TO "plain user"' in step
    assert 'GRANT EXECUTE ON FUNCTION pg_reload_conf() TO "plain user"' in step


def test_with_these_grants_it_works_and_is_put_back(own: Postgres, plain: Postgres) -> None:
    changes = classified(plain, checkpoint_timeout="11min")
    with contextlib.closing(own.connect()) as conn:
        role = sql.Identifier("plain user")
        for grant in (
            "grant alter system on parameter checkpoint_timeout to {}",
            "grant execute on function pg_reload_conf() to {}",
        ):
            conn.execute(sql.SQL(grant).format(role))
        with apply_server_settings(plain, changes, allow_alter_system=True):
            assert show(own, "checkpoint_timeout") == "11min"
        assert show(own, "checkpoint_timeout") == "5min"
        assert entries_of(own, "checkpoint_timeout") == {"checkpoint_timeout": None}
        conn.execute("alter system set checkpoint_timeout to '7min'")
        conn.execute("select pg_reload_conf()")
        assert until(lambda: show(own, "checkpoint_timeout") == "7min")
        with (
            pytest.raises(TargetError, match="cannot see whether ALTER SYSTEM set the setting before"),
            apply_server_settings(plain, changes, allow_alter_system=True),
        ):
            pass
        assert show(own, "checkpoint_timeout") == "7min"
        conn.execute(sql.SQL("grant pg_read_all_settings to {}").format(role))
        with apply_server_settings(plain, changes, allow_alter_system=True):
            assert show(own, "checkpoint_timeout") == "11min"
        assert show(own, "checkpoint_timeout") == "7min"
        conn.execute("alter system reset checkpoint_timeout")
        conn.execute("select pg_reload_conf()")
    assert until(lambda: show(own, "checkpoint_timeout") == "5min")


@pytest.mark.parametrize(
    ("line", "stops"),
    [
        ("shared_buffers = 333MB", False),
        ("work_mem = lots", False),
        ("no_such_setting = 1", True),
        ("work_mem = = 4MB", True),
        ("include 'missing.conf'", True),
    ],
)
def test_only_what_stops_a_reload_refuses_one(others: Postgres, line: str, *, stops: bool) -> None:
    """A line that waits for a restart was "an error, so that a reload fails"; the server itself is the judge here."""
    changes = classified(others, checkpoint_timeout="11min")
    with contextlib.closing(others.connect()) as conn:
        place = Path(show(others, "config_file"))
        before = place.read_bytes()
        try:
            place.write_bytes(before + b"\nbgwriter_delay = 217ms\n" + line.encode() + b"\n")
            conn.execute("select pg_reload_conf()")
            if stops:
                time.sleep(0.3)
                assert show(others, "bgwriter_delay") == "200ms", "the server changed nothing"
            else:
                assert until(lambda: show(others, "bgwriter_delay") == "217ms", 10)
            refused = refusal(others, conn, changes, allow_alter_system=True)
            assert ("a reload changes nothing" in str(refused)) == stops
        finally:
            place.write_bytes(before)
            conn.execute("select pg_reload_conf()")
            assert until(lambda: show(others, "bgwriter_delay") == "200ms", 10)
