"""A statement whose identifier changed (its table was recreated, or the server upgraded) is the same statement."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_store import MadeServer

from dbdyno.base.json_types import JsonObject
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.causes import change_of
from dbdyno.snapshot.causes.what_happened import causes, causes_section
from dbdyno.snapshot.engines.view import View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.reading.renumbered_statements import renumbered_identifiers
from dbdyno.snapshot.report import report
from dbdyno.snapshot.wording import setting_change


class Server(MadeServer):
    """A synthetic server that is upgraded, so that it has two versions."""

    version = 150000

    def facts(self) -> JsonObject:
        return {
            **super().facts(),
            "version": f"{self.version // 10000}.1",
            "version_num": self.version,
            "started_us": self.version,
        }


@pytest.fixture
def server(tmp_path: Path) -> Server:
    """Twelve sub-intervals, from the seventh on under other identifiers: of one text in three tenants, two of which are
    the same two by number as before."""
    made = Server(tmp_path / "snaps")
    made.prints = {1: "f", 2: "f", 3: "g", 4: "g", 5: "g"}
    made.texts = dict.fromkeys((1, 2), "select sum(amount) from orders") | dict.fromkeys((3, 4, 5), "select 1")
    for at in range(13):
        made.call(1 if at < 7 else 2, 100, 1000.0)
        made.call(3, 10, 10.0)
        made.call(4 if at < 7 else 5, 10, 10.0)
        if at == 7:
            made.version = 180000
        made.step()
    return made


def test_a_statement_under_another_identifier_is_neither_new_nor_gone(server: Server):
    store = server.store
    taken = store.snapshots_of(None)
    with Interval(store, taken[0], taken[6]) as before, Interval(store, taken[6], taken[12]) as after:
        change = change_of(before, after)
        assert {key: (one.before["calls"], one.after["calls"]) for key, one in change.statements.items()} == {
            2: (pytest.approx(100 / 60), pytest.approx(100 / 60)),
            3: (pytest.approx(10 / 60), pytest.approx(10 / 60)),
            5: (pytest.approx(10 / 60), pytest.approx(10 / 60)),
        }
        words = [cause.words for cause in causes(change)]
        assert not any(word.startswith("new statement") for word in words)
        notes = causes_section(change)["notes"]
    assert any(note.startswith("2 statements have another identifier than before but the same text") for note in notes)


def test_a_cut_that_lies_one_sub_interval_too_early_makes_no_new_statement_of_it(server: Server):
    taken = server.store.snapshots_of(None)
    with Interval(server.store, taken[0], taken[5]) as before, Interval(server.store, taken[5], taken[12]) as after:
        assert {2, 3, 5} == change_of(before, after).statements.keys()


def test_a_comparison_tests_such_a_statement_as_one(server: Server):
    model = compare(server.store, period(server.store, "snap:1..7"), period(server.store, "snap:8..13"))
    (objects,) = (one for one in model["sections"] if one["name"] == "objects")
    assert "By statement" not in [one["title"] for one in objects["tables"]], "neither new nor gone, nor changed"
    assert model["verdict"]["word"] == "ok", "the same work, under other identifiers, on another version"


def test_an_upgrade_is_named_as_one(server: Server):
    taken = server.store.snapshots_of(None)
    with server.change(taken, 6) as change:
        words = [cause.words for cause in causes(change)]
    assert words == ["the server was upgraded from 15.1 to 18.1"], "and not: it was restarted"


def test_what_both_sides_called_keeps_its_identifier_and_a_text_without_a_fingerprint_its_own():
    prints = {"1": "f", "2": "f", "3": "f", "4": "f", "5": ""}
    assert renumbered_identifiers({"1", "3", "5"}, {"3", "2", "4", "6"}, prints) == {"1": "2", "4": "2"}
    assert renumbered_identifiers({"1"}, {"1", "2"}, prints) == {}, "one more tenant is a new statement"


def test_a_steady_load_without_a_cause_says_so_and_explains_nothing(tmp_path: Path):
    """It said "+0.01 ms of statement time a second, of it 98 % ..., 100% of the change is not explained by these"."""
    made = Server(tmp_path / "snaps")
    for at in range(9):
        made.call(1, 100, 100.0 + at % 2)
        made.step()
    taken = made.store.snapshots_of(None)
    with Interval(made.store, taken[0], taken[4]) as before, Interval(made.store, taken[4], taken[8]) as after:
        part = causes_section(change_of(before, after))
    assert part["notes"] == ["statement time was steady: 1.68 and 1.68 ms a second"]


def test_a_statement_of_a_steady_load_is_no_cause_for_its_share_of_next_to_nothing(tmp_path: Path):
    """On a load of 0.866 and 0.915 ms a second it was "slower: COMMIT, 11 % of the change"."""
    made = Server(tmp_path / "snaps")
    for at in range(9):
        made.call(1, 100, 500.0)
        made.call(2, 10, 0.06 if at < 5 else 0.6)
        made.call(3, 0 if at < 5 else 10, 0.0 if at < 5 else 0.6)
        made.step()
    taken = made.store.snapshots_of(None)
    with Interval(made.store, taken[0], taken[4]) as before, Interval(made.store, taken[4], taken[8]) as after:
        change = change_of(before, after)
        assert change.share([2]) == pytest.approx(0.474, abs=0.01)
        assert causes(change) == []


def test_a_command_that_ran_once_is_no_new_statement_and_stands_behind_a_cause_that_lasts(tmp_path: Path):
    """A count of a session that then held its transaction open was "new statement", before what the transaction did."""
    made = Server(tmp_path / "snaps")
    made.texts = {1: "select 1", 2: "select count(*) from orders"}
    for at in range(9):
        made.call(1, 100, 1000.0 if at < 5 else 1700.0)
        if at == 6:
            made.call(2, 1, 900.0)
        made.step()
    taken = made.store.snapshots_of(None)
    with Interval(made.store, taken[0], taken[4]) as before, Interval(made.store, taken[4], taken[8]) as after:
        found = [(one.words, one.evidence) for one in causes(change_of(before, after))]
    assert found[0][0] == "slower: select 1 (1)"
    assert found[1] == ("ran once: select count(*) from orders (2)", "took 900 ms")


class NewView(Server):
    """A synthetic server that has one more view after its upgrade."""

    def views(self) -> list[View]:
        found = super().views()
        return found if self.version >= 180000 else [one for one in found if one.name != "pg_stat_user_tables"]


def test_a_view_of_the_newer_version_alone_is_told_in_words_and_asks_for_nothing(tmp_path: Path):
    """It was "pg_stat_io this server has no pg_stat_io", and advised to read the same databases."""
    made = NewView(tmp_path / "snaps")
    for at in range(6):
        made.version = 150000 if at < 3 else 180000
        made.call(1, 10, 10.0)
        made.step()
    taken = made.store.snapshots_of(None)
    with Interval(made.store, taken[0], taken[-1]) as whole:
        warnings = report(whole)["warnings"]
    (told,) = (one for one in warnings if "pg_stat_user_tables" in one["text"])
    assert told["text"].endswith("; pg_stat_user_tables is not on this server")
    assert told["next"] == ""


def test_a_setting_without_a_value_says_so():
    assert setting_change("log_connections", "off", "") == "log_connections: off → (empty)"
    assert setting_change("autovacuum_worker_slots", None, "16") == "autovacuum_worker_slots: (not there) → 16"
