"""Refusal of servers that look like production, because a rehearsal writes although it rolls back."""

from __future__ import annotations

import contextlib

import psycopg

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.nouns import with_noun

_RECENT = """
select count(*)::int, min(usename)::text, min(nullif(application_name, ''))::text from pg_stat_activity
where coalesce(backend_type, 'client backend') = 'client backend' and usename is not null
and pid <> pg_backend_pid() and coalesce(application_name, '') not like 'dbdyno%' and datname = current_database()
and (state is null or state <> 'idle' or state_change > now() - interval '10 seconds')
"""
"""Query for active sessions; a session counts, too, if the role may not see its type and state (NULL)."""
_REPLICAS = "select count(*)::int from pg_stat_replication where application_name not like 'dbdyno%'"
_STANDBY = "select pg_is_in_recovery()"


def refuse_production(server: Postgres) -> None:
    """Raise an error if a server looks like production.

    Raises:
        TargetError: The user's configuration marks the server as live, other sessions are using the database, replicas
            follow the server, or it is a standby.
    """
    server.refuse_live()
    with contextlib.closing(server.connect()) as conn:
        (is_standby,) = conn.execute(_STANDBY).fetchone() or (False,)
        count, user, application = conn.execute(_RECENT).fetchone() or (0, "", "")
        replicas = 0
        with contextlib.suppress(psycopg.Error):
            (replicas,) = conn.execute(_REPLICAS).fetchone() or (0,)
    reasons = {
        "it is a standby, on which writes cannot be rehearsed": is_standby,
        f"{with_noun(replicas, 'replica')} {'follows' if replicas == 1 else 'follow'} it": replicas > 0,
        f"{with_noun(count, 'session')} of others {'was' if count == 1 else 'were'} at work there in the last 10 s"
        f" ({_user_and_application(user, application)})": count > 0,
    }
    reason = next((words for words, holds in reasons.items() if holds), None)
    if reason is not None:
        raise TargetError(
            f"looks like a production server: {reason}",
            where=server.safe_dsn,
            next_step="rehearse on a copy that nobody uses; create one with `dbdyno move A B --database`",
        )


def _user_and_application(user: str | None, application: str | None) -> str:
    return ", ".join(word for word in (user, application) if word) or "unknown"
