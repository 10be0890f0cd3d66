"""Acknowledged rows that a killed node can have lost."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.wide.nodes import Marks, loss_window_s, node_generations, was_restarted

MODE, PERIOD = "commitlog_sync", "commitlog_sync_period"


class Session:
    """Session that answers queries on settings and node starts, and raises an error for those that a node lacks."""

    def __init__(self, settings: dict[str, str] | None, nodes: list[tuple[str, int, int]] | None = None) -> None:
        self._settings, self._nodes = settings, nodes

    def execute(self, cql: str) -> list[tuple[Any, ...]]:
        from cassandra import InvalidRequest

        known = self._nodes if "gossip_info" in cql else self._settings
        if known is None:
            raise InvalidRequest("unknown keyspace system_views")
        if isinstance(known, list):
            return list(known)
        name = cql.rsplit("'", 2)[1]
        return [(known[name],)] if name in known else []


def test_rows_are_sure_once_answers_are_as_much_younger_as_a_log_may_be_late() -> None:
    marks = Marks(20.0, 0)
    for at_s, done in ((0.0, 100), (5.0, 200), (19.9, 300)):
        marks.add(at_s, done)
        assert marks.sure == 0
    marks.add(25.0, 400)
    assert marks.sure == 200
    marks.add(100.0, 500)
    assert marks.sure == 400


def test_rows_are_sure_at_once_where_the_log_is_synced_before_the_answer() -> None:
    marks = Marks(0.0, 0)
    marks.add(1.0, 100)
    assert marks.sure == 100


def test_what_was_sure_before_a_load_goes_on_stays_so() -> None:
    marks = Marks(20.0, 70)
    marks.add(0.0, 100)
    assert marks.sure == 70


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({MODE: "periodic", PERIOD: "10000ms"}, 20.0),
        ({MODE: "periodic", PERIOD: "2s"}, 4.0),
        ({MODE: "batch", PERIOD: "0ms"}, 0.0),
        ({MODE: "periodic", PERIOD: "soon"}, 20.0),
        (None, 20.0),
    ],
)
def test_a_node_tells_how_late_its_log_may_be(settings: dict[str, str] | None, seconds: float) -> None:
    pytest.importorskip("cassandra", reason="the Cassandra driver is not installed: run `make setup-wide`")
    assert loss_window_s(Session(settings)) == pytest.approx(seconds)


def test_a_node_with_another_generation_was_started_again() -> None:
    pytest.importorskip("cassandra", reason="the Cassandra driver is not installed: run `make setup-wide`")
    one = node_generations(Session({}, [("10.0.0.1", 7000, 5), ("10.0.0.2", 7000, 6)]))
    assert was_restarted(one, one) is False
    assert was_restarted(one, {"10.0.0.1:7000": 5}) is False, (
        "a node that left acknowledges no more, and lost nothing itself"
    )
    assert was_restarted(one, {"10.0.0.1:7000": 5, "10.0.0.2:7000": 9}) is True
    assert was_restarted(one, node_generations(Session({}))) is None, "not known"
    assert was_restarted(None, one) is None
