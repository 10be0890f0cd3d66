"""Tests of types: the files hold the same values that psycopg reads and the server shows as text."""

from __future__ import annotations

import base64
import contextlib
import random
import struct
from typing import Any

import duckdb
import pytest
from move_lab import Lab

NATIVE = {
    "b": "boolean",
    "i2": "smallint",
    "i4": "integer",
    "i8": "bigint",
    "o": "oid",
    "f4": "real",
    "f8": "double precision",
    "n": "numeric(12,2)",
    "n38": "numeric(38,10)",
    "d": "date",
    "t": "time",
    "ts": "timestamp",
    "tz": "timestamptz",
    "v": "varchar(20)",
    "c": "char(6)",
    "x": "text",
    "bin": "bytea",
}
WORDS = {
    "nn": "numeric",
    "n60": "numeric(60,20)",
    "iv": "interval",
    "ttz": "time with time zone",
    "ip": "inet",
    "net": "cidr",
    "mac": "macaddr",
    "u": "uuid",
    "j": "json",
    "jb": "jsonb",
    "bi": "bit(5)",
    "vb": "varbit",
    "a": "integer[]",
    "aa": "text[][]",
    "e": "mood",
    "dom": "pos",
    "comp": "pair",
    "rng": "int4range",
    "mon": "money",
    "xm": "xml",
    "tsv": "tsvector",
    "pt": "point",
    "lsn": "pg_lsn",
    "reg": "regclass",
    "ch": '"char"',
    "nm": "name",
}
MADE = (
    "create type mood as enum ('so so', 'glad', 'wütend')",
    "create domain pos as interval check (value > '0 s')",
    'create type pair as (x integer, "a b" text)',
)
VALUES: dict[str, tuple[str, ...]] = {
    "b": ("true", "false"),
    "i2": ("-32768", "32767", "0"),
    "i4": ("-2147483648", "2147483647"),
    "i8": ("-9223372036854775808", "9223372036854775807"),
    "o": ("0", "4294967295"),
    "f4": ("'NaN'", "'-Infinity'", "3.4028235e38", "1e-45", "'-0'"),
    "f8": ("'NaN'", "'Infinity'", "1.7976931348623157e308", "0.1", "5e-324"),
    "n": ("9999999999.99", "-0.01", "0", "100.5"),
    "n38": ("1234567890123456789012345678.0123456789", "-9999999999999999999999999999.9999999999", "1e-10", "10000"),
    "d": ("'4713-01-01 BC'", "'0001-01-01'", "'9999-12-31'", "'2000-02-29'"),
    "t": ("'00:00'", "'23:59:59.999999'"),
    "ts": ("'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'1999-12-31 23:59:59.5'"),
    "tz": ("'1970-01-01 00:00:00.000001+02'", "'2026-03-29 02:30 UTC'"),
    "v": ("''", "'ünï'", "'it''s'"),
    "c": ("'ab'", "'ab  cd'", "''"),
    "x": ("'a\nb\\N'", "'\U0001f600'", "repeat('xy', 40000)"),
    "bin": ("''", "'\\x00ff'", "decode(repeat('ab', 5000), 'hex')"),
    "nn": ("'NaN'", "1e300", "1.10", "-0.000000000000000000000000000000000000000000001", "0.00"),
    "n60": ("1234567890123456789012345678901234567890.00000000000000000001",),
    "iv": ("'1 mon -3 days 04:05:06.789'", "'-178000000 years'", "'0'"),
    "ttz": ("'24:00:00-12'", "'04:05:06.789+05:30'"),
    "ip": ("'192.168.1.4/24'", "'::1'", "'10.0.0.1'"),
    "net": ("'10.0.0.0/8'", "'2001:db8::/32'"),
    "mac": ("'08:00:2b:01:02:03'",),
    "u": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'"),
    "j": ('\'{"b" :  1, "a": [1.10, null]}\'', "'null'"),
    "jb": ('\'{"b":1,"a":1.10}\'', "'\"\\u00fc\"'", "'null'"),
    "bi": ("B'10101'",),
    "vb": ("B''", "B'101010101'"),
    "a": ("'{}'", "'{1,NULL,-3}'", "'[-2:-1]={7,8}'", "'{{{1},{2}},{{3},{4}}}'"),
    "aa": ('\'{{"a,b","NULL"},{NULL,"q\\""}}\'',),
    "e": ("'so so'", "'wütend'"),
    "dom": ("'1 day'",),
    "comp": ("row(1, 'a,\"b')", "row(null, null)", "row(-1, '')"),
    "rng": ("'empty'", "'[1,10)'", "'(,)'"),
    "mon": ("12.34", "'-1234567.89'"),
    "xm": ("'<a b=\"1\">x</a>'", "'plain'"),
    "tsv": ("'a:1A b ''c d'''",),
    "pt": ("'(1.5,-0.1)'",),
    "lsn": ("'16/B374D848'",),
    "reg": ("'pg_class'",),
    "ch": ("'a'", "''"),
    "nm": ("'some name'",),
}


def some(rng: random.Random, column: str) -> str:
    """Return a literal of the column's type, sometimes NULL."""
    kind = {**NATIVE, **WORDS}[column]
    return "null" if rng.random() < 0.2 else f"({rng.choice(VALUES[column])})::{kind}"


def filled(lab: Lab, columns: dict[str, str], rows: int) -> None:
    """Create a table `t` with these columns and an `id`, filled at random; print the seed."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    lines = [f"({row}, {', '.join(some(rng, name) for name in columns)})" for row in range(rows)]
    lab.run(*MADE, f"create table t (id int, {declared})", f"insert into t values {', '.join(lines)}")


def same(column: str, ours: Any, theirs: Any) -> bool:
    """Return True if values are equal; NaN equals NaN, and -0 only -0."""
    if column == "f4" and theirs is not None:  # DuckDB gives it in double precision
        return struct.pack("f", ours) == struct.pack("f", theirs)
    return repr(ours) == repr(theirs) or (type(ours) is not float and ours == theirs)


def test_native_values_are_those_that_psycopg_reads(lab: Lab) -> None:
    filled(lab, NATIVE, 60)
    lab.run("update t set d = '0001-01-01' where d < '0001-01-01'")  # older ones are no dates of Python's
    lab.moved("--table", "t", "--piece", "16KiB", "--verify", "source")
    names = ", ".join(["id", *NATIVE])
    instant = "(extract(epoch from tz) * 1000000)::bigint as tz"
    theirs = lab.rows(f"select {names.replace('tz', instant)} from t order by id")
    ours = lab.files(names.replace("tz", "epoch_us(tz) as tz"), "order by id")
    assert len(ours) == len(theirs) == 60
    for mine, yours in zip(ours, theirs, strict=True):
        for name, left, right in zip(["id", *NATIVE], mine, yours, strict=True):
            assert same(name, left, right), f"{name}: {left!r} is not {right!r}"


def test_all_values_come_back_as_the_text_they_were(lab: Lab) -> None:
    """The server casts the text of the files back to values equal to its own."""
    filled(lab, WORDS, 60)
    lab.moved("--table", "t", "--verify", "source")
    names = list(WORDS)
    texts = ", ".join(
        f"case when {name} is not null or {name}::text is not null then {name}::text end" for name in names
    )
    theirs = lab.rows(f"select id, {texts} from t order by id")
    ours = lab.files(", ".join(["id", *names]), "order by id")
    for mine, yours in zip(ours, theirs, strict=True):
        for name, left, right in zip(names, mine[1:], yours[1:], strict=True):
            assert left == right, f"{name}: {left!r} is not {right!r}"
    with lab.connect() as conn:
        for row in ours:
            casts = ", ".join(f"%s::{kind}::text" for kind in WORDS.values())
            back = conn.execute(f"select {casts}".encode(), row[1:]).fetchone()
            assert back == row[1:], "what comes back from the text is the same value"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("numeric(5,2)", "NaN"),
        ("date", "infinity"),
        ("date", "-infinity"),
        ("timestamp", "infinity"),
        ("timestamptz", "-infinity"),
        ("timestamptz", "294276-12-31 23:59:59.999999+00"),
        ("time", "24:00:00"),
    ],
)
def test_a_value_that_arrow_cannot_hold_makes_its_column_text(lab: Lab, kind: str, value: str) -> None:
    lab.run(
        f"create table t (id int, v {kind}, w {kind})",
        f"insert into t select g, case when g = 4000 then '{value}'::{kind} end from generate_series(1, 4000) g",
    )
    done = lab.moved("--table", "t", "--piece", "16KiB", "--verify", "source")
    assert "column v" in done.stderr
    assert "is moved as text" in done.stderr
    [(text,)] = lab.files("v", "where id = 4000")
    with lab.connect() as conn:
        conn.execute("set timezone = 'UTC'")
        assert conn.execute("select v::text from t where id = 4000").fetchone() == (text,)
    assert len(lab.files("id")) == 4000


def test_the_type_is_noted_in_the_file(lab: Lab) -> None:
    lab.run("create table t (a numeric(12,2), b inet, c varchar(3)[])")
    lab.moved("--table", "t")
    with contextlib.closing(duckdb.connect()) as conn:
        found = conn.execute(f"select value from parquet_kv_metadata('{lab.out}/*.parquet') where key = 'ARROW:schema'")
        [(schema,)] = found.fetchall()
    noted = base64.b64decode(schema)
    for kind in (b"numeric(12,2)", b"inet", b"character varying(3)[]", b"dbdyno.pg_type", b"public.t"):
        assert kind in noted
