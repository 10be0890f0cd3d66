"""Tests of `replace` and `replace-partitions` on a partitioned table: new partitions replace the old ones."""

from __future__ import annotations

import pytest
from move_lab import Lab
from test_move_in import into, nothing_left
from test_move_swap import change_meanwhile, older_snapshot

from command_line import checked, dbdyno, succeeded
from dbdyno.move.engines.postgres import swap

OIDS = "select relname, oid::bigint from pg_partition_tree('u') join pg_class on oid = relid where isleaf order by 1"
ROWS = "select tableoid::regclass::text, count(*), sum(v) from u group by 1 order by 1"
FACTS = (
    "select indexrelid::regclass::text, indrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid,"
    " (select inhparent::regclass::text from pg_inherits where inhrelid = indexrelid)"
    " from pg_index where indrelid::regclass::text ~ '^u' order by 1",
    "select conname, conrelid::regclass::text, pg_get_constraintdef(oid), coninhcount, convalidated"
    " from pg_constraint where conrelid::regclass::text ~ '^u' order by 2, 1",
    "select relid::text, parentrelid::text, pg_get_expr(relpartbound, oid),"
    " coalesce(relacl, acldefault('r', relowner))::text,"
    " obj_description(oid) from pg_partition_tree('u') join pg_class c on c.oid = relid order by 1",
)
PARTS = ("--table", "u", "--mode", "replace-partitions")


@pytest.fixture
def parted(lab: Lab) -> Lab:
    """Create rows of days 1 and 2, and a table with partitions for four days, one of them partitioned again."""
    lab.run(
        "create table k (id int primary key)",
        "insert into k select generate_series(0, 9)",
        "create table u (day int, id int, v int default 7 check (v > 0), k int references k,"
        " primary key (day, id)) partition by range (day)",
        "create table u_1 partition of u for values from (1) to (2)",
        "create table u_2 partition of u for values from (2) to (3) partition by hash (id)",
        "create table u_2_0 partition of u_2 for values with (modulus 2, remainder 0)",
        "create table u_2_1 partition of u_2 for values with (modulus 2, remainder 1)",
        "create table u_3 partition of u for values from (3) to (4)",
        "create table u_4 (id int not null, k int, v int default 8 not null constraint u_v_check check (v > 0),"
        " gone int, day int not null)",
        "alter table u_4 drop column gone",
        "alter table u attach partition u_4 for values from (4) to (5)",
        "create index u_v on u (v)",
        'create index "u USING x" on u_1 (k) where v > 1',
        "comment on table u_1 is 'first'",
        "grant select on u_1 to public",
        "insert into u select d, g, 1, g % 10 from generate_series(1, 4) d, generate_series(1, 100) g",
        "create table t as select d as day, g as id, 5 as v, g % 10 as k from generate_series(1, 2) d,"
        " generate_series(1, 300) g",
        "analyze u_1",
    )
    lab.moved("--table", "t", "--piece", "16KiB")
    return lab


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_partitions_that_rows_came_for_are_others_and_the_rest_is_untouched(parted: Lab, workers: str) -> None:
    facts, oids = [parted.rows(query) for query in FACTS], dict(parted.rows(OIDS))
    done = checked(into(parted, *PARTS, "--workers", workers, "--verify", "source"))
    assert "3 partitions replaced and 600 rows added, the others unchanged" in done.stdout
    assert "Attached in place of the old ones: u_1, u_2_0, u_2_1" in done.stdout
    assert [parted.rows(query) for query in FACTS] == facts
    now = dict(parted.rows(OIDS))
    assert {name for name in oids if oids[name] != now[name]} == {"u_1", "u_2_0", "u_2_1"}
    assert parted.rows("select day, count(*), sum(v) from u group by 1 order by 1") == [
        *((1, 300, 1500), (2, 300, 1500)),
        *((3, 100, 100), (4, 100, 100)),
    ]
    assert parted.rows("select count(*) > 0 from pg_stats where tablename = 'u_1'") == [(True,)]
    assert nothing_left(parted)


def test_replace_by_several_workers_empties_the_partitions_without_rows(parted: Lab) -> None:
    done = checked(into(parted, "--table", "u", "--mode", "replace", "--workers", "2"))
    assert "whose partitions replace the table's" in done.stderr
    assert "the table emptied and 600 rows added" in done.stdout
    assert parted.rows("select day, count(*) from u group by 1 order by 1") == [(1, 300), (2, 300)]
    assert nothing_left(parted)


def test_attach_neither_scans_the_new_partition_nor_builds_on_it(parted: Lab) -> None:
    """Check by the server's own messages what ATTACH would scan or build while the table is locked."""
    said: list[str] = []
    real = swap.has_older_snapshots

    def listening(conn: object) -> bool:
        conn.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))  # type: ignore[attr-defined]
        conn.execute("set client_min_messages = debug1")  # type: ignore[attr-defined]
        return real(conn)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "has_older_snapshots", listening)
        assert into(parted, *PARTS).returncode == 0
    implied = [one for one in said if "is implied by existing constraints" in one]
    assert len(implied) == 3, said
    locked = said[said.index(implied[0]) :]
    assert not [one for one in locked if one.startswith(("building index", "verifying table", "validating"))], locked


@pytest.mark.parametrize(
    ("stands", "said"),
    [
        ("create view w as select id from u_1", "partition u_1: rule _RETURN on view w stands on it"),
        ("create table c (d int, i int, foreign key (d, i) references u)", "the foreign key c_d_i_fkey names it"),
        ("create publication p for table u", "it is published"),
        ("alter table u enable row level security", "it has rules or row-level security"),
        ("alter table u_1 set (fillfactor = 70)", "partition u_1: it has storage parameters"),
        (
            "create function f() returns trigger language plpgsql as 'begin return new; end';"
            " create trigger g before insert on u for each row execute function f()",
            "it has the trigger g",
        ),
    ],
)
def test_where_it_cannot_be_it_is_one_sentence_and_nothing_changes(parted: Lab, stands: str, said: str) -> None:
    parted.run("set client_min_messages = error; " + stands)
    oids, rows = parted.rows(OIDS), parted.rows(ROWS)
    done = into(parted, *PARTS)
    staged = into(parted, "--table", "u", "--mode", "replace", "--workers", "2") if "references" not in stands else None
    parted.run("drop publication if exists p")
    assert done.returncode == 2
    assert f"its partitions cannot be replaced: {said}" in done.stderr, done.stderr
    assert parted.rows(OIDS) == oids
    if staged is None:
        assert parted.rows(ROWS) == rows
    else:
        assert (staged.returncode, "rows are written twice" in staged.stderr) == (0, True), staged.stderr
        assert parted.rows("select count(*) from u") == [(600,)]
    assert nothing_left(parted)


def test_rows_outside_of_all_partitions_are_refused_or_rejected(parted: Lab) -> None:
    parted.run("insert into t values (9, 1, 5, 1), (0, 1, 5, 1)")
    parted.out = parted.folder / "wide"
    parted.moved("--table", "t")
    rows = parted.rows(ROWS)
    done = into(parted, *PARTS)
    assert done.returncode == 2
    assert "no partition of relation" in done.stderr
    assert "create a partition for such rows" in done.stderr
    assert parted.rows(ROWS) == rows
    bad = parted.folder / "bad.jsonl"
    done = into(parted, *PARTS, "--rejects", bad)
    assert (done.returncode, "2 rows rejected" in done.stdout) == (1, True), done.stderr
    assert "no partition of relation" in bad.read_text()
    assert parted.rows("select count(*) from u where v = 5") == [(600,)]
    assert nothing_left(parted)


def test_text_that_is_another_type_is_read_on_the_way_and_compared(lab: Lab) -> None:
    lab.run(
        "create table t as select 1 as day, '10.0.0.1'::inet as a, (g / 8.0)::numeric(9, 3) as n"
        " from generate_series(1, 50) g",
        "create table u (day int, a inet, n numeric(9, 3), twice numeric generated always as (n * 2) stored)"
        " partition by list (day)",
        "create table u_1 partition of u for values in (1)",
        "create table u_d partition of u default",
        "insert into u (day, a) values (1, '::1'), (5, '::1')",
    )
    lab.moved("--table", "t")
    done = checked(into(lab, *PARTS, "--verify", "target"))
    assert "the table, read before the commit, contains exactly what was sent" in done.stdout
    assert lab.rows("select day, a::text, count(*), sum(twice) from u group by 1, 2 order by 1") == [
        (1, "10.0.0.1/32", 50, 2 * sum(range(51)) / 8),
        (5, "::1/128", 1, None),
    ]


def test_who_has_an_older_snapshot_sees_no_part_of_the_new_rows(parted: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    oids = parted.rows(OIDS)
    with older_snapshot(parted, monkeypatch) as other:
        done = checked(into(parted, *PARTS))
        assert "a session has a snapshot from before the load" in done.stderr
        assert other.execute("select count(*) from u where v = 5").fetchone() == (0,)
    assert parted.rows(OIDS) == oids
    assert parted.rows("select count(*) from u where v = 5") == [(600,)]
    assert nothing_left(parted)


def test_a_partition_that_comes_while_rows_come_changes_nothing(parted: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    change_meanwhile(parted, monkeypatch, "create table u_5 partition of u for values from (5) to (6)")
    rows = parted.rows(ROWS)
    done = into(parted, *PARTS)
    assert (done.returncode, "partitions were added, removed or altered" in done.stderr) == (2, True), done.stderr
    assert parted.rows(ROWS) == rows
    assert nothing_left(parted)


def test_a_table_without_partitions_is_told_so(lab: Lab) -> None:
    lab.run("create table t as select 1 as id", "create table u (id int)")
    lab.moved("--table", "t")
    done = into(lab, *PARTS)
    assert (done.returncode, "has no partitions" in done.stderr) == (2, True)


def test_from_server_to_server_in_one_transaction(parted: Lab) -> None:
    facts, oids = [parted.rows(query) for query in FACTS], dict(parted.rows(OIDS))
    words = ("--table", "t", "--to", parted.dsn, "--into", "u", "--mode", "replace-partitions")
    done = succeeded("move", parted.dsn, *words, "--job", parted.folder / "job", "--verify", "target")
    assert "3 partitions replaced and 600 rows added" in done.stdout
    assert [parted.rows(query) for query in FACTS] == facts
    now = dict(parted.rows(OIDS))
    assert {name for name in oids if oids[name] != now[name]} == {"u_1", "u_2_0", "u_2_1"}
    assert parted.rows("select count(*), count(*) filter (where v = 5) from u") == [(800, 600)]
    parted.run("create view w as select id from u_1")
    done = dbdyno("move", parted.dsn, *words, "--job", parted.folder / "again")
    assert (done.returncode, "view w stands on it" in done.stderr) == (2, True), done.stderr
    assert nothing_left(parted)
