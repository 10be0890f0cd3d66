"""Random statements whose result does not depend on time or chance, sent by several sessions in one order.

The server generates keys; other values are small numbers that also occur as keys.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg

TABLES = (
    "create table account (id int generated always as identity primary key, name text, v bigint default 0)",
    "create table entry (id bigserial primary key, account int references account, peer int references account,"
    " amount int, note text)",
    "create table token (code uuid primary key default gen_random_uuid(), account int references account, uses int)",
    "create table tally (n int unique, times int default 0)",
    "create view owed as select e.id as entry, e.account as who, e.amount from entry e",
    "insert into tally (n) select generate_series(1, 60)",
)
LEFT = {
    "account": "select name, v from account order by name",
    "entry": "select note, a.name, p.name, amount from entry e left join account a on a.id = e.account"
    " left join account p on p.id = e.peer order by note, 2, 3, 4",
    "token": "select a.name, uses from token t join account a on a.id = t.account order by 1, 2",
    "tally": "select n, times from tally order by n",
}
"""Queries for the content of the tables, with names instead of keys."""
SESSIONS = 3


class Statements:
    """A random load on sessions opened by `connect`, which `go` runs; the same seed gives the same statements."""

    def __init__(self, seed: int, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self.random = random.Random(seed)
        self.connect = connect
        self.sessions = [connect() for _ in range(SESSIONS)]
        self.accounts: list[int] = []
        self.entries: list[int] = []
        self.tokens: list[UUID] = []
        self.count = 0

    def go(self, steps: int) -> None:
        """Send `steps` statements or transactions, then close the sessions."""
        doing = (
            self.account,
            self.account,
            self.entry,
            self.entry_of,
            self.token,
            self.change,
            self.change,
            self.tally,
        )
        doing += (self.entries_at_once, self.batch, self.upsert, self.remove, self.through_view, self.again)
        for step in range(steps):
            own = self.random.choice(self.sessions)
            self.random.choice(doing if step > 2 else (self.account,))(own)
        for session in self.sessions:
            session.close()

    def cursor(self, session: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
        """A cursor that sends values as text, in binary, or as literals of the text."""
        kind = self.random.choice(("text", "binary", "literals"))
        return psycopg.ClientCursor(session) if kind == "literals" else session.cursor(binary=kind == "binary")

    def ask(self, session: psycopg.Connection[Any], sql: str, *values: object) -> list[tuple[Any, ...]]:
        found = self.cursor(session).execute(sql, values)  # type: ignore[arg-type]
        return found.fetchall() if found.description else []

    def small(self) -> int:
        return self.random.randint(1, 60)

    def name(self) -> str:
        self.count += 1
        return f"n{self.count:04}"

    def account(self, session: psycopg.Connection[Any]) -> None:
        sql = "insert into account (name, v) values (%s, %s) returning id"
        self.accounts += [row[0] for row in self.ask(session, sql, self.name(), self.small())]

    def entry(self, session: psycopg.Connection[Any]) -> None:
        one, other = self.random.choice(self.accounts), self.random.choice(self.accounts)
        sql = "insert into entry (account, peer, amount, note) values (%s, %s, %s, %s), (%s, %s, %s, %s)"
        values = (one, other, self.small(), self.name(), other, one, self.small(), self.name())
        self.entries += [row[0] for row in self.ask(session, f"{sql} returning id, peer", *values)]

    def entry_of(self, session: psycopg.Connection[Any]) -> None:
        sql = (
            "with made as (insert into entry (account, amount, note) select id, %s, %s from account where id = %s"
            " returning id) select id from made"
        )
        values = (self.small(), self.name(), self.random.choice(self.accounts))
        self.entries += [row[0] for row in self.ask(session, sql, *values)]

    def token(self, session: psycopg.Connection[Any]) -> None:
        sql = "insert into token (account, uses) values (%s, %s) returning code"
        self.tokens += [row[0] for row in self.ask(session, sql, self.random.choice(self.accounts), self.small())]

    def change(self, session: psycopg.Connection[Any]) -> None:
        if self.tokens and self.random.random() < 0.3:
            code = self.random.choice(self.tokens)
            self.ask(session, "update token set uses = uses + %s where code = %s", self.small(), code)
            return
        sql = "update account set v = v * 3 + %s where id = %s and v <> %s"
        ends = self.random.choice((None, "commit", "rollback"))
        if ends:
            self.ask(session, "begin")
        self.ask(session, sql, self.small(), self.random.choice(self.accounts), self.small())
        if ends:
            self.ask(session, sql, self.small(), self.random.choice(self.accounts), self.small())
            self.ask(session, ends)

    def tally(self, session: psycopg.Connection[Any]) -> None:
        self.ask(session, "update tally set times = times + %s where n = %s", self.small(), self.small())

    def entries_at_once(self, session: psycopg.Connection[Any]) -> None:
        if self.entries:
            some = self.random.sample(self.entries, min(3, len(self.entries)))
            self.ask(session, "update entry set amount = amount + %s where id = any(%s)", self.small(), some)

    def batch(self, session: psycopg.Connection[Any]) -> None:
        if len(self.entries) > 1:
            one, other = self.random.sample(self.entries, 2)
            sql = (
                "update entry e set amount = v.amount, peer = v.peer from (values (%s::bigint, %s::int, %s::int),"
                " (%s, %s, %s)) v(id, amount, peer) where e.id = v.id"
            )
            peers = self.random.choices(self.accounts, k=2)
            self.ask(session, sql, one, self.small(), peers[0], other, self.small(), peers[1])

    def upsert(self, session: psycopg.Connection[Any]) -> None:
        sql = "insert into tally (n, times) values (%s, %s) on conflict (n) do update set times = tally.times + %s"
        self.ask(session, sql, self.small(), self.small(), self.small())

    def remove(self, session: psycopg.Connection[Any]) -> None:
        if self.entries:
            sql = "delete from entry where id in (%s, %s) and amount > %s"
            self.ask(session, sql, *self.random.choices(self.entries, k=2), self.small())

    def through_view(self, session: psycopg.Connection[Any]) -> None:
        owed = "select who from owed where entry > %s and amount < %s and who = %s"
        sql = f"update account set v = v + %s where id in ({owed})"
        if self.entries:
            values = (self.small(), self.random.choice(self.entries), self.small(), self.random.choice(self.accounts))
            self.ask(session, sql, *values)

    def again(self, session: psycopg.Connection[Any]) -> None:
        """Close a session and open another one."""
        session.close()
        self.sessions[self.sessions.index(session)] = self.connect()
