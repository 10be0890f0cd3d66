"""Tests of the statements after the rows: their dependencies, their locks, the largest first; and of the comparison of
schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.move.database.archive import Entry
from dbdyno.move.database.compare import differing_schemas
from dbdyno.move.database.indexes import Step, _ready, size_of, steps_of
from dbdyno.move.database.programs import connection_environment
from dbdyno.move.database.schema import AFTER, BEFORE, LAST, LEFT_OUT, PRIVILEGES, REFRESH, by_stage, statements_of

NONE: frozenset[str] = frozenset()


def entry(number: int, kind: str, tag: str, *needs: int, sql: str = "", section: str = "post-data") -> Entry:
    """Return an entry of an archive in the schema `s`."""
    drop = f"DROP {kind} s.{tag};\n"
    return Entry(number, kind, "s", tag, section, sql, drop, "me", "", "", "", needs)


TABLE = entry(1, "TABLE", "t", section="pre-data")
OTHER = entry(2, "TABLE", "u", section="pre-data")
SMALL, LARGE = entry(3, "INDEX", "small", 1), entry(4, "INDEX", "large", 1)
KEY = entry(5, "CONSTRAINT", "t t_pkey", 1)
FOREIGN = entry(6, "FK CONSTRAINT", "u u_t_fkey", 2, 5)
EVERYTHING = [TABLE, OTHER, SMALL, LARGE, KEY, FOREIGN]
SIZES = {"s.small": 10, "s.large": 100, "s.t_pkey": 50, "s.t": 1000, "s.u": 500, "s.with blank": 7}


def ready(left: list[Step], running: list[Step], workers: int = 2) -> list[str]:
    missing = {one.entry.id for one in (*left, *running)}
    return [one.entry.tag for one in _ready(left, missing, running, workers)]


def test_a_foreign_key_waits_for_the_key_that_it_needs() -> None:
    steps = {one.entry.id: one for one in steps_of(EVERYTHING[2:], EVERYTHING, SIZES)}
    assert ready([steps[6]], [steps[5]]) == []
    assert ready([steps[6]], []) == ["u u_t_fkey"]


def test_several_indexes_of_a_table_are_built_at_once_and_a_key_alone() -> None:
    steps = {one.entry.id: one for one in steps_of(EVERYTHING[2:], EVERYTHING, SIZES)}
    assert ready([steps[4], steps[5], steps[3]], []) == ["large", "small"]
    assert ready([steps[5]], [steps[3]]) == []


def test_a_foreign_key_locks_the_table_that_it_refers_to_as_well() -> None:
    (step,) = steps_of([FOREIGN], EVERYTHING, SIZES)
    assert step.tables == {2} or step.tables == {1, 2}
    whole = {one.entry.id: one for one in steps_of(EVERYTHING[2:], EVERYTHING, SIZES)}
    assert whole[6].tables == {1, 2}


@pytest.mark.parametrize(
    ("one", "size"),
    [
        (LARGE, 100),
        (KEY, 50),
        (FOREIGN, 500),
        (entry(7, "CONSTRAINT", "my table with blank", 1), 7),
        (entry(8, "TRIGGER", "t touch", 1), 0),
        (entry(9, "CONSTRAINT", "t unknown", 1), 0),
    ],
)
def test_the_size_of_a_statement_is_that_of_what_it_builds_or_reads(one: Entry, size: int) -> None:
    assert size_of(one, SIZES) == size


def test_each_entry_has_its_stage() -> None:
    comment = entry(7, "COMMENT", "INDEX small", 3, section="none")
    entries = [
        entry(0, "ENCODING", "ENCODING", section="pre-data"),
        *EVERYTHING,
        comment,
        entry(8, "ACL", "TABLE t", 1, section="none"),
        entry(9, "MATERIALIZED VIEW DATA", "m"),
        entry(10, "EVENT TRIGGER", "e"),
        entry(11, "COMMENT", "EVENT TRIGGER e", 10, section="none"),
        entry(12, "DATABASE", "d", section="pre-data"),
        entry(13, "ACL", "DATABASE d", 12, section="none"),
        entry(14, "COMMENT", "TABLE t", 1, section="none"),
    ]
    stages = {name: [one.id for one in each] for name, each in by_stage(entries).items()}
    assert stages == {
        BEFORE: [1, 2, 14],
        AFTER: [3, 4, 5, 6, 7],
        PRIVILEGES: [8],
        REFRESH: [9],
        LAST: [10, 11],
        LEFT_OUT: [0, 12, 13],
    }


def test_statements_with_names_of_any_kind_are_told_apart() -> None:
    text = 'GRANT SELECT ON TABLE s."a;b" TO "role; drop";\nREVOKE ALL ON TABLE s.t FROM PUBLIC;\n'
    assert statements_of(text) == [
        'GRANT SELECT ON TABLE s."a;b" TO "role; drop";',
        "REVOKE ALL ON TABLE s.t FROM PUBLIC;",
    ]


def test_equal_schemas_do_not_differ() -> None:
    assert differing_schemas(EVERYTHING, EVERYTHING, NONE, same_version=True) == []


def test_what_is_missing_is_named_and_what_is_new() -> None:
    found = differing_schemas(EVERYTHING, [*EVERYTHING[:-1], entry(9, "VIEW", "v")], NONE, same_version=True)
    assert found == ["fk constraint s.u u_t_fkey is missing", "view s.v is not in the source"]


def test_versions_write_the_same_expression_differently() -> None:
    old = entry(1, "VIEW", "v", sql="CREATE VIEW s.v AS\n SELECT (people.id + 1)\n   FROM s.people;")
    new = entry(1, "VIEW", "v", sql="CREATE VIEW s.v AS\n SELECT id + 1\n   FROM s.people;")
    other = entry(1, "VIEW", "v", sql="CREATE VIEW s.v AS\n SELECT id + 2\n   FROM s.people;")
    assert differing_schemas([old], [new], NONE, same_version=False) == []
    assert differing_schemas([old], [new], NONE, same_version=True) != []
    assert differing_schemas([old], [other], NONE, same_version=False) != []


def test_grants_are_compared_as_a_set_and_without_roles_that_lack() -> None:
    here = entry(1, "ACL", "TABLE t", sql="GRANT SELECT ON TABLE s.t TO a;\nGRANT SELECT ON TABLE s.t TO gone;\n")
    there = entry(1, "ACL", "TABLE t", sql="GRANT SELECT ON TABLE s.t TO a;\n")
    assert differing_schemas([here], [there], frozenset({"gone"}), same_version=True) == []
    assert differing_schemas([here], [there], NONE, same_version=True) != []


def test_connection_parameters_become_variables() -> None:
    found = connection_environment({"host": "db1", "password": "secret", "sslcertmode": "allow", "keepalives": "1"})
    assert found == {"PGHOST": "db1", "PGPASSWORD": "secret", "PGSSLCERTMODE": "allow"}


@pytest.mark.parametrize(("version", "major"), [("15.18", 15), ("18.4", 18), ("19beta1", 19)])
def test_the_major_version_of_programs(version: str, major: int) -> None:
    assert Binaries(Path("/bin"), version, "installed").major == major
