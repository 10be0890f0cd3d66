"""Doctor checks of a MariaDB server and the connected user."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.check import Outcome
from dbdyno.bench.check_leftovers import check_findings
from dbdyno.bench.mariadb.restore import UnrestoredMariaDB
from dbdyno.bench.mariadb.session import row, rows
from dbdyno.bench.postgres.leftovers import sources

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.server import MariaDB

_SAFE = "@@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin, @@sync_binlog"


def version(_target: MariaDB, connection: Any) -> Outcome:
    """Check which version the server has."""
    found = f"MariaDB {row(connection, 'select @@version')[0]}"
    return Outcome(True, found, "supported by dbdyno")


def user(_target: MariaDB, connection: Any) -> Outcome:
    """Check which user is connected."""
    name = row(connection, "select current_user()")[0]
    return Outcome(True, str(name), "the load runs with the rights of this user")


def replica(_target: MariaDB, connection: Any) -> Outcome:
    """Check whether the server accepts writes."""
    if row(connection, "select @@read_only")[0]:
        step = "name the primary, or run SET GLOBAL read_only = 0 if this server is the primary"
        return Outcome(False, "read_only = on", "workloads that write are refused", step)
    return Outcome(True, "takes writes")


def connections(_target: MariaDB, connection: Any) -> Outcome:
    """Check how many sessions the load can open."""
    most = int(row(connection, "select @@max_connections")[0])
    status = "select variable_value from information_schema.global_status where variable_name = 'THREADS_CONNECTED'"
    free = most - int(row(connection, status)[0])
    few = free < 20
    step = "raise max_connections with SET GLOBAL, if the machine has enough memory" if few else ""
    return Outcome(not few, f"{free} free of {most}", "largest number of sessions, over all arms", step)


def server_settings(target: MariaDB, connection: Any) -> Outcome:
    """Check whether settings of the whole server can be varied."""
    if target.is_embedded:
        return Outcome(True, "embedded server", "global and startup settings can be varied")
    grants = [str(row[0]).upper() for row in rows(connection, "show grants")]
    if any(word in one for one in grants if " ON *.*" in one for word in ("ALL PRIVILEGES", "SUPER", " ADMIN")):
        after = "if you allow it: alter_system = true under [target]; startup settings only on the embedded server"
        return Outcome(True, "SET GLOBAL", after)
    step = "GRANT SUPER ON *.* TO the user, or use the embedded server"
    return Outcome(False, "no right to SET GLOBAL", "only session settings can be varied", step)


def leftover_settings(target: MariaDB, connection: Any) -> Outcome:
    """Check whether a killed run left a setting of this server changed."""
    return check_findings(UnrestoredMariaDB(target).find_unrestored_on(connection, sources())[1])


def durability(_target: MariaDB, connection: Any) -> Outcome:
    """Check whether a commit is on disk when it returns."""
    flush, double, binlog, synced = row(connection, f"select {_SAFE}")
    weak = [
        f"{name} = {found}"
        for name, found, safe in (
            ("innodb_flush_log_at_trx_commit", str(flush), "1"),
            ("innodb_doublewrite", "ON" if str(double) in ("1", "ON") else "OFF", "ON"),
            ("sync_binlog", str(synced) if binlog else "1", "1"),
        )
        if found != safe
    ]
    if not weak:
        return Outcome(True, "each commit is flushed", "commit times include the flush to disk")
    step = "set them to 1 (ON) to measure durable commits"
    return Outcome(False, ", ".join(weak), "commits are faster than on a server that must not lose data", step)


def waits(target: MariaDB, connection: Any) -> Outcome:
    """Check whether the server records waits and this user may read them."""
    if target.has_performance_schema(connection):
        return Outcome(True, "performance_schema", "waits of the load's sessions are sampled")
    step = "start the server with performance_schema = ON, and grant this user SELECT on performance_schema.*"
    return Outcome(False, "this user cannot read performance_schema", "waits of sessions are not known", step)


def login(target: MariaDB, _connection: Any) -> Outcome:
    """Check whether the load's own client can log in as the driver did."""
    from dbdyno import _core

    scripts = [{"name": "check", "text": "select 1;"}]
    own = {"name": "own", "connection": target.load_connection("dbdyno"), "scripts": scripts, "sessions": 1}
    try:
        with contextlib.suppress(KeyError):
            _core.Load({"seed": 7, "arms": [own]}).try_connect()  # type: ignore[list-item]
    except TargetError as error:
        return Outcome(False, error.message.splitlines()[0], "no run is possible", error.next_step or "")
    return Outcome(True, "works")
