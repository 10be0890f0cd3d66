"""Sessions whose statements the server does not log or count, so that this costs neither side any time."""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg

_OFF = """
select pg_catalog.set_config(s.name, s.value, false) from (values
  ('log_min_duration_statement', '-1'), ('log_min_duration_sample', '-1'), ('log_statement', 'none'),
  ('log_duration', 'off'), ('auto_explain.log_min_duration', '-1'), ('pg_stat_statements.track', 'none')
) as s(name, value) join pg_catalog.pg_settings p using (name) where p.setting <> s.value
"""


def disable_logging(connection: Any) -> None:
    """Switch off the logging and counting of a session's statements, if its role is allowed to."""
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
        connection.execute(_OFF)
