"""Causes in indexes, on synthetic counters: added indexes, and indexes that a recreated table lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_store import MadeServer, counters, key, text

from dbdyno.snapshot.causes.change import Cause
from dbdyno.snapshot.causes.what_happened import causes
from dbdyno.snapshot.engines.view import View

TABLE = "orders"


class Server(MadeServer):
    """A synthetic server with one table, given by its number and the names of its indexes."""

    number = 7
    indexes: tuple[str, ...] = ("orders_pkey", "orders_cust")

    def views(self) -> list[View]:
        names = (
            *map(key, ("datid", "relid", "indexrelid")),
            *map(text, ("schemaname", "relname", "indexrelname")),
            *counters(("idx_scan",)),
        )
        rows = [(5, self.number, sum(map(ord, one)), "public", TABLE, one, self.at_s) for one in self.indexes]
        return [*super().views(), View("pg_stat_user_indexes", "objects", names, rows, "datid")]


def named(server: Server, asked: str, *, indexes: tuple[str, ...], blocks: int, rows: int = 1, anew: int = 7) -> Cause:
    """The first cause where a statement takes ten times as long from the fourth snapshot on, with so many blocks and
    rows a call for 10 blocks and 1 row, and its table has these indexes and this number since."""
    server.texts, taken = {1: asked}, []
    for at in range(7):
        later = at > 3
        if later:
            server.indexes, server.number = indexes, anew
            if anew != 7:
                server.tables.pop(7, None)
        server.names = {server.number: TABLE}
        blocks_hit, found = (blocks, rows) if later else (10, 1)
        server.call(1, 100, 1000.0 if later else 100.0, shared_blks_hit=100 * blocks_hit, rows=100 * found)
        server.touch(server.number, seq_scan=100 if later and blocks > 100 else 1)
        taken.append(server.step())
    with server.change(taken, 3) as change:
        return causes(change)[0]


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path / "snaps")


INSERT = "insert into orders select $1"
MORE = ("orders_pkey", "orders_cust", "orders_a", "orders_b")


def test_indexes_that_make_writes_dearer_are_their_cause(server: Server):
    """It was "slower: insert into orders ..."."""
    cause = named(server, INSERT, indexes=MORE, blocks=60)
    assert cause.words == "2 indexes on orders were created: writes are dearer"
    assert cause.evidence == "blocks per call 10 → 60; orders_a, orders_b"
    assert (cause.code, cause.statements) == ("index", {1})


@pytest.mark.parametrize(
    ("asked", "blocks", "rows"),
    [
        ("select * from orders", 60, 1),  # reads do not pay for it
        (INSERT, 10, 1),  # no more work a call
        (INSERT, 60, 6),  # for more rows
    ],
)
def test_a_new_index_is_no_cause_without_writes_that_do_more_for_as_many_rows(
    server: Server, asked: str, blocks: int, rows: int
):
    assert "created" not in named(server, asked, indexes=MORE, blocks=blocks, rows=rows).words


def test_a_table_made_anew_without_an_index_is_the_cause_and_not_the_first_index_that_it_lost(server: Server):
    """It was "index orders_pkey on orders was dropped; sequential scans of orders 0 → 0 a second"."""
    server.prints = {1: "f"}
    cause = named(server, "select * from orders", indexes=("o2_pkey",), blocks=600, anew=8)
    assert cause.words == "table orders was recreated without its indexes orders_cust, orders_pkey"
    assert cause.evidence == "sequential scans of orders 0.0167 → 1.67 a second"


def test_a_table_made_anew_with_as_many_indexes_of_other_names_has_lost_none(server: Server):
    cause = named(server, "select * from orders", indexes=("o2_pkey", "o2_cust"), blocks=600, anew=8)
    assert "orders_pkey" not in cause.words and "without" not in cause.words


@pytest.mark.parametrize(("dropped", "is_cause"), [(1, False), (3, True)])
def test_an_index_that_was_gone_for_most_of_the_first_stretch_is_no_cause_of_the_difference(
    server: Server, dropped: int, is_cause: bool
):
    """A lock made a statement slower, and an index that had been dropped before came first."""
    server.texts, server.names, taken = {1: "select * from orders"}, {7: TABLE}, []
    for at in range(7):
        server.indexes = ("orders_pkey",) if at >= dropped else Server.indexes
        server.call(1, 100, 1000.0 if at > 3 else 100.0)
        server.touch(7, seq_scan=10)
        taken.append(server.step())
    with server.change(taken, 3) as change:
        words = [cause.words for cause in causes(change)]
    assert ("index orders_cust on orders was dropped" in words) == is_cause
