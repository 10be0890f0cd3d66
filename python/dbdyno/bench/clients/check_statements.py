"""Statements that the checks of a client send, for each engine, and their expected results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CheckStatements:
    """Statements of the checks for one engine.

    Attributes:
        no_row: A query without rows.
        rows: A query with 250 rows.
        values: A query with one row if all its values arrive unchanged.
        kept: A query that returns one row for each prepared statement of the session.
        kept_rows: Minimum and maximum number of rows that `kept` returns at its third execution, for each way of
            sending statements.
        failing: A statement that fails, and its SQLSTATE.
        no_table: SQLSTATE of a query on a table that does not exist.
        end: The statement that commits.
        session: The query that the sessions run in checks with several sessions.
        setting: A statement that sets a session's setting, and a query that returns a row if it is in effect.
        endless: A statement that the statement timeout ends, and the SQLSTATE of that error.
        sleep: A statement that runs for 20 s.
        pause: A statement that takes `PAUSE_NS` on the server.
        fetches: True if rows can be fetched a few at a time.
    """

    no_row: str
    rows: str
    values: str
    kept: str
    kept_rows: Mapping[str, tuple[int, int]]
    failing: tuple[str, str]
    no_table: str
    end: str
    session: str
    setting: tuple[str, str]
    endless: tuple[str, str]
    sleep: str
    pause: str
    fetches: bool = True


MANY = 1 << 16
PAUSE_NS = 200_000_000
POSTGRES = CheckStatements(
    no_row="select 1 where false;",
    rows="select i, 'x' from generate_series(1, 250) i;",
    values="select 1 where :number::bigint = 4711 and :word::text = 'o''clock %s ?' and :nothing::text is null;",
    kept="select name from pg_prepared_statements where :number::bigint = 4711;",
    kept_rows={"literals": (0, 0), "binds": (0, 0), "prepared": (1, MANY)},
    failing=("select 1 / 0;", "22012"),
    no_table="42P01",
    end="end",
    session="select 1 where :client_id >= 0;",
    setting=("set work_mem = '3MB'", "select 1 where current_setting('work_mem') = '3MB';"),
    endless=("select pg_sleep(5);", "57014"),
    sleep="select pg_sleep(20);",
    pause="select 1 from pg_sleep(0.2);",
)
MARIADB = CheckStatements(
    no_row="select 1 from dual where false;",
    rows="select seq, 'x' from seq_1_to_250;",
    values="select 1 from dual where :number = 4711 and :word = 'o''clock %s ?' and :nothing is null;",
    kept="select seq from seq_1_to_100 where :number = 4711 and seq <= (select variable_value from "
    "information_schema.session_status where variable_name = 'COM_STMT_PREPARE');",
    kept_rows={"literals": (0, 0), "binds": (2, MANY), "prepared": (1, 1)},
    failing=("select dbdyno_no_such_function();", "42000"),
    no_table="42S02",
    end="commit",
    session="select 1 from dual where :client_id >= 0;",
    setting=("set session sort_buffer_size = 65536", "select 1 from dual where @@sort_buffer_size = 65536;"),
    endless=("select count(*) from seq_1_to_100000 a, seq_1_to_100000 b where a.seq * b.seq < 0;", "70100"),
    sleep="select sleep(20);",
    pause="select sleep(0.2);",
    fetches=False,
)
