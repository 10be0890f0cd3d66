"""Values of a statement that are keys: those compared with a key column or written to it, found by a real parser."""

from __future__ import annotations

import re

import pytest

from dbdyno.bench.postgres.keys.catalog import Catalog, Relation, key_spaces
from dbdyno.bench.postgres.keys.plan import plan_of
from dbdyno.evidence.capture_keys import KeyPlan, KeyPositions

ACCOUNT, ENTRY, VIEW, OTHER = 1, 2, 3, 4
KEYS = [(ACCOUNT, "id"), (ENTRY, "id")]
FOREIGN = [((ENTRY, "account"), KEYS[0]), ((ENTRY, "peer"), KEYS[0])]
RELATIONS = {
    ("public", "account"): Relation(ACCOUNT, ("id", "name", "v")),
    ("public", "entry"): Relation(ENTRY, ("id", "account", "peer", "amount", "note")),
    ("public", "opened"): Relation(
        VIEW, ("entry", "who", "amount"), " SELECT e.id AS entry, e.account AS who, e.amount FROM entry e;"
    ),
    ("audit", "account"): Relation(OTHER, ("id", "v")),
}


def catalog() -> Catalog:
    """Return accounts, entries with two foreign keys to them, a view on entries, and another table of the same name."""
    spaces, firsts = key_spaces(KEYS, FOREIGN)
    names = [f"{'account' if oid == ACCOUNT else 'entry'}.{name}" for oid, name in firsts]
    return Catalog(dict(RELATIONS), spaces, names, ["integer"] * len(names), frozenset(KEYS), ("public",))


def shape(sql: str) -> str:
    """The shape of a statement, as the core makes it: literals and parameters numbered."""
    literals, mentions = iter(range(1000)), iter(range(1000))

    def mark(found: re.Match[str]) -> str:
        if found[1]:
            return f"'p{found[1]}x{next(mentions)}'"
        return f"'l{next(literals)}'" if found[0].startswith("'") else str(1_000_000 + next(literals))

    return re.sub(r"\$(\d+)|'[^']*'|\b\d+\b", mark, sql)


def plan(*statements: str) -> KeyPlan:
    return plan_of(catalog(), [(shape(sql), 1) for sql in statements])


def keys(sql: str) -> dict[str, str]:
    """Return the key space of each key in a statement, by `$1` or the literal's number; `[]` marks an array."""
    made = plan(sql)
    found: dict[str, str] = {}
    for places in made.statements:
        for sign, which in (("$", places.parameters), ("", places.literals)):
            for place in which:
                found[f"{sign}{place.number}"] = f"{made.names[place.space]}{'[]' if place.is_array else ''}"
    return found


def mapped(made: KeyPlan) -> list[KeyPositions]:
    """Return the statements in which at least one value is mapped."""
    return [places for places in made.statements if places.parameters or places.literals]


A, E = "account.id", "entry.id"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("update account set v = v + $1, name = 'x' where id = $2", {"$2": A}),
        ("update account set v = 7 where id = 7", {"1": A}),
        ("select * from account where $1 = account.id and v = $2", {"$1": A}),
        ("select * from account where id in (1, 2) and v in (3, 4)", {"0": A, "1": A}),
        ("select * from account where id = any($1) and v = any($2)", {"$1": f"{A}[]"}),
        ("select * from account where id = any(array[$1, $2]::int[])", {"$1": A, "$2": A}),
        ("select * from account where id <> $1 and v <> $2", {"$1": A}),
        ("select * from account where id > $1 and v > $2 order by id limit $3", {"$1": A}),
        ("select * from account where id between $1 and $2", {"$1": A, "$2": A}),
        ("select * from account where id = $1::bigint", {"$1": A}),
        ("select * from account where id + 1 = $1", {}),
        ("select * from account where id = $1 + 1", {}),
        ("select id + $1 from account order by $2", {}),
        ("select f($1)", {}),
        (
            "insert into entry (account, peer, amount) values ($1, $2, $3), (1, 2, 3)",
            {"$1": A, "$2": A, "0": A, "1": A},
        ),
        ("insert into entry values ($1, $2, $3, $4, $5)", {"$1": E, "$2": A, "$3": A}),
        ("insert into entry (account, amount) select $1, $2", {"$1": A}),
        ("insert into entry (account, amount) select unnest($1::int[]), unnest($2::int[])", {"$1": f"{A}[]"}),
        ("insert into entry (account, amount) select * from unnest($1::int[], $2::int[]) u(a, b)", {"$1": f"{A}[]"}),
        ("insert into account (id, v) values ($1, $2) on conflict (id) do update set v = $3", {"$1": A}),
        ("update entry set (account, amount) = ($1, $2) where id not in ($3)", {"$1": A, "$3": E}),
        ("update entry e set amount = v.b from (values ($1, $2)) v(a, b) where e.id = v.a", {"$1": E}),
        ("update entry set account = case when amount > $1 then $2 else $3 end", {"$2": A, "$3": A}),
        ("update entry set account = coalesce($1, account), amount = coalesce($2, amount)", {"$1": A}),
        ("delete from entry where (account, amount) in (($1, $2), ($3, $4))", {"$1": A, "$3": A}),
        ("select * from account a join entry e on e.account = a.id and e.id = $1 where a.v = $2", {"$1": E}),
        ("select * from entry where account = (select id from account where id = $1 and v = $2)", {"$1": A}),
        ("select * from account a where exists (select 1 from entry where account = a.id and peer = $1)", {"$1": A}),
        ("with mine as (select id, v from account) select * from mine where id = $1 and v = $2", {"$1": A}),
        ("select * from opened where entry = $1 and who = $2 and amount = $3", {"$1": E, "$2": A}),
        ("select * from audit.account where id = $1", {}),
        ("select * from account where ($1 is null or id = $1)", {"$1": A}),
        ('select * from "account" where "id" = $1 and "V" = $2', {"$1": A}),
        ("begin; update account set v = 5 where id = 6; notify x, 'y'; commit", {"1": A}),
        ("declare c cursor with hold for select * from account where id = 5", {"0": A}),
        (
            "merge into account t using (values ($1, $2)) s(a, b) on t.id = s.a when matched then update set v = s.b"
            " when not matched then insert (id, v) values (s.a, s.b)",
            {"$1": A},
        ),
    ],
)
def test_a_value_is_a_key_where_a_key_is_compared_or_written(sql: str, expected: dict[str, str]) -> None:
    assert keys(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("insert into account (name) values ($1) returning id, name", [A, None]),
        ("insert into account (name) values ($1) returning *", [A, None, None]),
        ("insert into account as a (name) values ($1) returning a.id as made", [A]),
        ("insert into entry (account) values ($1) returning account, id", [None, E]),
        ("with n as (insert into account (name) values ($1) returning id) select id, 1 from n", [A, None]),
        (
            "with n as (insert into account (name) values ($1) on conflict do nothing returning id)"
            " select id from n union all select id from account where name = $2",
            [A],
        ),
        ("update account set v = $1 returning id", None),
        ("delete from account where v = $1 returning id", None),
        ("select id from account where v = $1", None),
    ],
)
def test_new_keys_are_those_that_an_insert_returns_of_its_own_key(sql: str, expected: list[str | None] | None) -> None:
    made = plan(sql)
    returned = [places.returns[0] for places in made.statements if any(one is not None for one in places.returns[0])]
    names = [[None if space is None else made.names[space] for space in spaces] for spaces in returned]
    assert names == ([] if expected is None else [expected])


def test_what_cannot_be_parsed_is_counted_and_nothing_is_mapped_in_it() -> None:
    made = plan("update account set v = 1 where current of c", "execute x(7)", "set x = 'y'", "create table t (a int)")
    assert mapped(made) == []
    assert [sql for sql, _ in made.unread] == [
        shape("update account set v = 1 where current of c"),
        shape("execute x(7)"),
    ]


def test_a_parameter_that_is_a_key_and_something_else_is_sent_as_captured() -> None:
    made = plan(
        "update account set v = $1 where id = $1", "select * from account a, entry e where a.id = $1 and e.id = $1"
    )
    assert (mapped(made), len(made.mixed)) == ([], 2)


def test_a_name_of_several_schemas_is_unknown_once_a_session_changes_its_search_path() -> None:
    certain, changed = ("select v from account where id = 7",), "set search_path to audit"
    assert mapped(plan(*certain))
    assert mapped(plan(*certain, changed)) == []
    assert mapped(plan(changed, "select v from public.account where id = 7"))


@pytest.mark.parametrize(
    ("sql", "writes"),
    [
        ("select v from account", False),
        ("select name from account for update", False),
        ("with n as (insert into account (v) values (1) returning id) select id from n", True),
        ("select v into backup from account", True),
        ("select setval('account_id_seq', 7)", True),
        ("select book(7)", True),
        ("select lower('X')", False),
        ("create table backup as select v from account", True),
        ("set work_mem = '4MB'", False),
    ],
)
def test_a_statement_may_write_although_it_ends_as_a_select(sql: str, writes: bool) -> None:
    found = catalog()
    found.writers |= {"book"}
    made = plan_of(found, [(shape(sql), 1)])
    assert any(places.writes for places in made.statements) == writes


def test_foreign_keys_join_the_spaces_of_the_keys_that_they_reference() -> None:
    a, b, c, d = (1, "id"), (2, "a"), (3, "b"), (4, "x")
    spaces, firsts = key_spaces([a, d], [(b, a), (c, b)])
    assert spaces == {a: 0, b: 0, c: 0, d: 1}
    assert firsts == [a, d]
