"""Doctor checks of the engine: version, role, privileges, statistics, durability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.bench.check import Outcome, first_value, is_superuser
from dbdyno.bench.metrics import VIEWS

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]


def version(_target: Postgres, conn: Connection) -> Outcome:
    """Check which version the server has, and whether dbdyno is tested with it."""
    number = int(first_value(conn, "select current_setting('server_version_num')"))
    shown = "PostgreSQL " + str(first_value(conn, "select current_setting('server_version')"))
    if number < 120000:
        return Outcome(
            False,
            shown,
            "dbdyno is tested with 12 to 18; older views may lack columns",
            "upgrade, or accept that some figures are missing",
        )
    return Outcome(True, shown, "supported")


def role(_target: Postgres, conn: Connection) -> Outcome:
    """Check which role is connected, and whether it is a superuser."""
    role = first_value(conn, "select current_user::text")
    if is_superuser(conn):
        return Outcome(True, f"'{role}', superuser", "every setting can be varied")
    return Outcome(
        None,
        f"'{role}', no superuser",
        "session settings of context 'user' can be varied; others need a grant",
        "nothing, unless the checks below name what you need",
    )


def other_sessions(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether the waits of other sessions are visible."""
    sees = is_superuser(conn) or first_value(conn, "select pg_has_role(current_user, 'pg_read_all_stats', 'usage')")
    if sees:
        return Outcome(True, "pg_read_all_stats", "all sessions' waits are visible")
    return Outcome(
        False,
        "no pg_read_all_stats",
        "waits of your own sessions are sampled, but not those of the WAL writer and checkpointer",
        "ask a superuser to run: GRANT pg_monitor TO your role",
    )


def views(_target: Postgres, conn: Connection) -> Outcome:
    """Check which statistics views can be read."""
    import psycopg

    missing = []
    for source, _, _, sql in VIEWS:
        try:
            conn.execute(sql).fetchone()
        except psycopg.Error:
            missing.append(source)
    known = ", ".join(source for source, *_ in VIEWS if source not in missing)
    if not missing:
        return Outcome(True, known, "all counters are recorded")
    return Outcome(
        "pg_stat_database" not in missing,
        f"{known}; not: {', '.join(missing)}",
        "the metrics leave out hidden views and views of newer versions",
    )


def io_timing(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether the engine times its I/O."""
    names = ["track_io_timing", "track_wal_io_timing"]
    rows = conn.execute("select name, setting from pg_settings where name = any(%s) order by name", [names]).fetchall()
    off = [name for name, setting in rows if setting == "off"]
    found = ", ".join(f"{name} = {setting}" for name, setting in rows)
    if not off:
        return Outcome(True, found, "times of reads, writes and syncs are measured")
    return Outcome(
        False,
        found,
        "the engine counts these I/Os but does not time them: their times are shown as not measured, not as 0",
        f"as superuser: SET {off[0]} = on for one session, or ALTER SYSTEM and a reload for all",
    )


def pg_stat_statements(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether counters per statement are available."""
    installed = first_value(conn, "select extversion from pg_extension where extname = 'pg_stat_statements'")
    active = first_value(conn, "select current_setting('pg_stat_statements.track', true)")
    available = first_value(
        conn,
        "select default_version from pg_available_extensions where name = 'pg_stat_statements'",
    )
    if installed and active:
        return Outcome(
            True,
            f"version {installed}, track = {active}",
            "statements can be distinguished; this costs some CPU per statement, the same in every arm",
        )
    if active:
        found, step = (
            "loaded, but the extension is not created in this database",
            "CREATE EXTENSION pg_stat_statements",
        )
    elif available:
        found, step = (
            "available, not loaded",
            "shared_preload_libraries = 'pg_stat_statements', restart, CREATE EXTENSION",
        )
    else:
        found, step = "not available on this server", "install the contrib package of this server version"
    return Outcome(None, found, "no figures per statement from the engine", step)


def alter_system(target: Postgres, conn: Connection) -> Outcome:
    """Check whether server settings can be varied."""
    if target.is_embedded:
        return Outcome(True, "embedded engine", "reload and restart settings can be varied")
    if first_value(conn, "select current_setting('allow_alter_system', true)") == "off":
        return Outcome(
            False,
            "allow_alter_system = off",
            "only session settings can be varied",
            "use the embedded engine for server settings",
        )
    may_reload = first_value(conn, "select has_function_privilege('pg_reload_conf()', 'execute')")
    number = int(first_value(conn, "select current_setting('server_version_num')"))
    granted = is_superuser(conn)
    if number >= 150000 and not granted:
        granted = bool(
            first_value(
                conn,
                "select exists (select from pg_settings where context = 'sighup'"
                " and has_parameter_privilege(name, 'ALTER SYSTEM'))",
            )
        )
    if granted and may_reload:
        return Outcome(
            True,
            "ALTER SYSTEM and pg_reload_conf()",
            "reload settings can be varied if you allow it; restarts only on embedded engines",
        )
    return Outcome(
        False,
        "no right to ALTER SYSTEM" if not granted else "no right to pg_reload_conf()",
        "only session settings can be varied",
        "GRANT ALTER SYSTEM ON PARAMETER ... and GRANT EXECUTE ON FUNCTION pg_reload_conf()"
        if number >= 150000
        else "connect as a superuser, or use the embedded engine",
    )


def session_settings(_target: Postgres, conn: Connection) -> Outcome:
    """Check how many settings can be varied per session."""
    total = int(first_value(conn, "select count(*) from pg_settings where context = 'superuser'"))
    number = int(first_value(conn, "select current_setting('server_version_num')"))
    free = int(first_value(conn, "select count(*) from pg_settings where context = 'user'"))
    allowed = total if is_superuser(conn) else 0
    if number >= 150000:
        allowed = int(
            first_value(
                conn,
                "select count(*) from pg_settings where context = 'superuser' and has_parameter_privilege(name, 'SET')",
            )
        )
    return Outcome(
        True if allowed == total else None,
        f"{free} settings for all users, {allowed} of {total} for superusers",
        "these can be varied by SET per session, in slices of milliseconds",
        "" if allowed == total else "GRANT SET ON PARAMETER ... (PostgreSQL 15+) for the settings that you need",
    )


def schema(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether built-in workloads can create their tables."""
    if first_value(conn, "select has_database_privilege(current_database(), 'create')"):
        return Outcome(True, "may create schemas", "built-in workloads create their own schema")
    return Outcome(
        False,
        "may not create a schema in this database",
        "built-in workloads cannot run; scripts on your own tables can",
        "GRANT CREATE ON DATABASE ... TO your role, or use another database",
    )


def recovery(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether the server accepts writes."""
    if first_value(conn, "select pg_is_in_recovery()"):
        return Outcome(False, "standby", "only read-only workloads can run; no redo positions")
    return Outcome(True, "primary", "reads and writes")


def wal_position(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether redo bytes can be measured."""
    import psycopg

    try:
        where = first_value(conn, "select pg_current_wal_insert_lsn()::text")
    except psycopg.Error as error:
        said = str(error).splitlines()[0]
        return Outcome(False, said, "redo bytes per commit cannot be measured", "use a primary")
    return Outcome(True, str(where), "redo bytes per commit are measured")


def pooler(target: Postgres, _conn: Connection) -> Outcome:
    """Check whether a connection pooler is between dbdyno and the server."""
    if target.pooled:
        return Outcome(
            False,
            "a pooler (such as pgbouncer) seems to be in front of the server",
            "session settings may affect other sessions; latencies include the pooler",
            "connect to the server itself",
        )
    return Outcome(True, "no pooler seen", "each session is a session of the server")


def durability(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether commits wait for the disk."""
    names = ["fsync", "synchronous_commit", "full_page_writes"]
    rows = conn.execute("select name, setting from pg_settings where name = any(%s) order by name", [names]).fetchall()
    found = ", ".join(f"{name} = {setting}" for name, setting in rows)
    if any(setting == "off" for _, setting in rows):
        return Outcome(
            False,
            found,
            "commits are faster than on a server that must not lose data",
            "turn them on for results that apply to production",
        )
    return Outcome(True, found, "commits wait for the disk as in production")


def connections(_target: Postgres, conn: Connection) -> Outcome:
    """Check whether the server has room for a plan's sessions."""
    row = conn.execute(
        "select current_setting('max_connections')::int,"
        " current_setting('superuser_reserved_connections')::int,"
        " (select count(*) from pg_stat_activity where coalesce(backend_type, 'client backend')"
        " = 'client backend'),"
        " (select rolconnlimit from pg_roles where rolname = current_user)"
    ).fetchone()
    most, reserved, used, limit = row or (0, 0, 0, -1)
    free = most - reserved - used
    free = min(free, limit) if limit >= 0 else free
    return Outcome(
        free >= 8,
        f"{free} free of {most}",
        "arms in slices keep the sessions of all arms open at once",
        "" if free >= 8 else "plan fewer sessions, or raise max_connections",
    )
