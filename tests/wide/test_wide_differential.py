"""SQL on mapped tables gives the same results as the same SQL on a PostgreSQL with the same rows."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from wide_lab import WideLab

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.wide.address import address
from dbdyno.wide.answer import Answer
from dbdyno.wide.catalog import read_keyspace
from dbdyno.wide.mapping import map_of

pytestmark = pytest.mark.soak
QUERIES = int(os.environ.get("DYNO_WIDE_QUERIES", "300"))
WIDE = """
create table wide (
  region text, id int, day date, no int,
  name text static, score double static,
  amount decimal, paid boolean, note text, at timestamp, big bigint,
  primary key ((region, id), day, no)
) with clustering order by (day desc, no asc);
create index on wide (note);
"""
TALL = """
create table customers (region text, id int, name text, score double precision, primary key (region, id));
create table orders (region text, id int, day date, no int, amount numeric, paid boolean, note text, at timestamp,
  big bigint, primary key (region, id, day, no));
"""
REGIONS, DAY = ("north", "south", "it's", "ü"), dt.date(2026, 1, 1)
COLUMNS = {
    "c": {"region": "text", "id": "int", "name": "text", "score": "double"},
    "o": {
        "region": "text",
        "id": "int",
        "day": "date",
        "no": "int",
        "amount": "decimal",
        "paid": "bool",
        "note": "text",
        "big": "int",
    },
}


def drawn(dice: random.Random, kind: str) -> Any:
    if kind == "text":
        return dice.choice([*REGIONS, "open", "done", ""])
    if kind == "date":
        return DAY + dt.timedelta(dice.randrange(6))
    if kind == "decimal":
        return Decimal(dice.randrange(-500, 500)) / 4
    if kind == "double":
        return dice.choice([0.0, 0.5, -1.25, 3.0])
    if kind == "bool":
        return dice.random() < 0.5
    return dice.randrange(-1, 12)


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"'{value}'" if isinstance(value, dt.date) else str(value)


def condition(dice: random.Random, alias: str) -> str:
    name, kind = dice.choice(list(COLUMNS[alias].items()))
    column = f"{alias}.{name}"
    way = dice.randrange(7)
    if way <= 2 or kind == "bool":
        return f"{column} = {literal(drawn(dice, kind))}"
    if way == 3:
        return f"{column} in ({', '.join(literal(drawn(dice, kind)) for _ in range(dice.randrange(1, 4)))})"
    if way == 4:
        return f"{column} {dice.choice(['<', '<=', '>', '>='])} {literal(drawn(dice, kind))}"
    if way == 5:
        return f"{column} between {literal(drawn(dice, kind))} and {literal(drawn(dice, kind))}"
    return dice.choice([f"{column} is not null", f"not ({column} = {literal(drawn(dice, kind))})"])


def conditions(dice: random.Random, aliases: list[str]) -> str:
    parts = [condition(dice, dice.choice(aliases)) for _ in range(dice.randrange(4))]
    # The key is asked for more often than chance would.
    if dice.random() < 0.5:
        alias = dice.choice(aliases)
        region = literal(dice.choice(REGIONS))
        parts += [f"{alias}.region = {region}", f"{alias}.id in ({dice.randrange(12)}, {dice.randrange(12)})"]
        if alias == "o" and dice.random() < 0.6:
            parts.append(f"o.day {dice.choice(['=', '>=', '<'])} {literal(drawn(dice, 'date'))}")
    if len(parts) > 1 and dice.random() < 0.15:
        parts = [f"({parts[0]} or {parts[1]})", *parts[2:]]
    dice.shuffle(parts)
    return f" where {' and '.join(parts)}" if parts else ""


def query(dice: random.Random) -> str:
    shape = dice.randrange(6)
    if shape == 0:
        return f"select * from customers c{conditions(dice, ['c'])}"
    if shape == 1:
        return f"select o.region, o.id, o.day, o.no, o.amount, o.note from orders o{conditions(dice, ['o'])}"
    kind = dice.choice(["join", "join", "left join", "right join", "full join"])
    on = "on c.region = o.region and c.id = o.id"
    if kind in ("join", "left join") and dice.random() < 0.3:
        on += f" and {condition(dice, dice.choice(['c', 'o']))}"
    joined = f"customers c {kind} orders o {on}{conditions(dice, ['c', 'o'])}"
    if shape == 2:
        return f"select c.name, o.day, o.no, o.big from {joined}"
    if shape == 3:
        return f"select c.region, count(*), sum(o.amount), max(o.day) from {joined} group by c.region"
    if shape == 4:
        inner = f"select o.region, o.id, count(*) as n from orders o{conditions(dice, ['o'])} group by o.region, o.id"
        return f"with o as ({inner}) select c.name, x.n, y.n from customers c join o x using (region, id)" + (
            " left join o y on y.id = x.id and y.region = x.region"
        )
    inner = f"select 1 from orders o where o.region = c.region and o.id = c.id and {condition(dice, 'o')}"
    return f"select c.region, c.id from customers c where {dice.choice(['', 'not '])}exists ({inner})"


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """Return the rows as sorted text, with numbers in a normal form."""
    return sorted(
        repr(tuple(format(Decimal(str(one)).normalize(), "f") if is_number(one) else one for one in row))
        for row in rows
    )


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


@pytest.fixture(scope="module")
def tall() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


def fill(dice: random.Random, lab: WideLab, conn: psycopg.Connection[Any]) -> None:
    lab.run(WIDE)
    conn.execute(TALL)
    parent = lab.session.prepare("insert into wide (region, id, name, score) values (?, ?, ?, ?)")
    child = lab.session.prepare(
        "insert into wide (region, id, day, no, amount, paid, note, at, big) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    for region in REGIONS:
        for number in range(10):
            given = (region, number, *(None if dice.random() < 0.2 else drawn(dice, one) for one in ("text", "double")))
            lab.session.execute(parent, given)
            days = {(drawn(dice, "date"), dice.randrange(4)) for _ in range(dice.randrange(8))}
            if given[2:] != (None, None) or days:
                # A partition without a row and without a static value is none.
                conn.execute("insert into customers values (%s, %s, %s, %s)", given)
            for day, no in days:
                rest = [drawn(dice, one) for one in ("decimal", "bool", "text")]
                rest += [dt.datetime(2026, 1, 1, 12, 0, 0, 1000 * dice.randrange(1000)), drawn(dice, "int")]
                row = (region, number, day, no, *(None if dice.random() < 0.15 else one for one in rest))
                lab.session.execute(child, row)
                conn.execute("insert into orders values (%s, %s, %s, %s, %s, %s, %s, %s, %s)", row)
    # Tombstones: a row, a partition, a static cell.
    for table, cql in (
        ("orders", "delete from wide where region = 'north' and id = 1 and day = '2026-01-02' and no = 1"),
        ("customers", "delete from wide where region = 'south' and id = 2"),
    ):
        lab.session.execute(cql)
        conn.execute(f"delete from {table} where {cql.partition('where ')[2]}")
    conn.execute("delete from orders where region = 'south' and id = 2")


def test_generated_queries_give_what_postgresql_gives(wide_lab: WideLab, tall: EmbeddedPostgres) -> None:
    seed = int(os.environ.get("DYNO_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}: DYNO_SEED={seed} repeats it")
    dice = random.Random(seed)
    with psycopg.connect(**tall.conninfo(), autocommit=True) as conn:
        fill(dice, wide_lab, conn)
        where = address(wide_lab.dsn)
        found = map_of(
            where.keyspace, read_keyspace(wide_lab.session, where.keyspace), {"wide": ("orders", "customers")}
        )
        pushed = answered = 0
        for _ in range(QUERIES):
            text = query(dice)
            expected = conn.execute(text).fetchall()
            with Answer(where, found, text, "map") as answer:
                got = list(answer.rows())
                pushed += any(one.scan.pushed for one in answer.scans.values())
            answered += bool(expected)
            assert plain(got) == plain(expected), text
    print(f"{pushed} of {QUERIES} pushed something, {answered} had an answer")
    assert pushed > QUERIES / 5
    assert answered > QUERIES / 5


def test_the_commands_as_a_user_types_them(wide_lab: WideLab, tmp_path: Path) -> None:
    wide_lab.run(WIDE)
    wide_lab.run("insert into wide (region, id, name) values ('north', 1, 'Ada')")
    wide_lab.run("insert into wide (region, id, day, no, amount) values ('north', 1, '2026-01-01', 1, 2.5)")
    file = tmp_path / "map.toml"
    assert dbdyno("wide", "map", wide_lab.dsn, "--name", "wide=orders,customers", "-o", str(file)).returncode == 0
    given = ("--map", str(file), "--target", wide_lab.dsn)
    done = dbdyno("wide", "check", *given)
    assert (done.returncode, "orders_customers_fk (region, id) holds in 1 rows" in done.stdout) == (0, True)
    text = "select name, sum(amount) as amount from customers join orders using (region, id) group by name"
    done = dbdyno("wide", "sql", text, *given, "--format", "csv")
    assert done.stdout == "name,amount\nAda,2.5000000000\n"
    done = dbdyno("wide", "sql", "update orders set amount = amount * 2 where region = 'north'", *given, "--write")
    assert done.stdout == "1 row changed.\n"
    assert wide_lab.rows("select amount from wide") == [(5,)]
    done = dbdyno("wide", "sql", "delete from orders where id = 1", *given)
    assert "nothing was written" in done.stderr
    wide_lab.run("alter table wide drop paid")
    done = dbdyno("wide", "sql", "select count(*) from orders", *given)
    assert done.returncode != 0
    assert "columns.paid: 'paid' is not a column of a child of wide" in done.stderr


def test_a_key_that_does_not_hold_is_found(wide_lab: WideLab, tmp_path: Path) -> None:
    wide_lab.run(WIDE)
    for no in (1, 2):
        wide_lab.run(f"insert into wide (region, id, day, no) values ('north', 1, '2026-01-01', {no})")
    file = tmp_path / "map.toml"
    dbdyno("wide", "map", wide_lab.dsn, "--name", "wide=orders,customers", "-o", str(file))
    file.write_text(file.read_text().replace('"region", "id", "day", "no"]', '"region", "id", "day"]', 1))
    done = dbdyno("wide", "check", "--map", str(file), "--target", wide_lab.dsn)
    assert done.returncode == 1
    assert "does NOT hold: of 2 rows 2 rows have the same key as another row" in done.stdout
