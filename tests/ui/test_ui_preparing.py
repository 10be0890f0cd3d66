"""A store without sums: pages answer at once, say that the sums are being made, and show the stretch when they are."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Browser, Seen

from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.engines.view import View
from dbdyno.snapshot.store.folder import Store
from dbdyno.ui.preparer import Preparer, prepare, progress

pytestmark = pytest.mark.drawn(drawn=False)
BEGIN_S, HOUR_S = 1_790_000_000 // 86_400 * 86_400, 3600
SNAPSHOTS, APART_S = 8, 4 * HOUR_S
WANTED = SNAPSHOTS - 1 + 1
"""Number of sums: of the hour before each snapshot except for the first one, and of one day."""
WAITS = "dbdyno is summing up this interval"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with snapshots every four hours over more than a day, each with one sampled session."""
    made = Store(tmp_path / "snaps")
    shown = [column.name for column in ACTIVITY]
    for at in range(SNAPSHOTS):
        at_us = (BEGIN_S + at * APART_S) * 1_000_000
        seen = {"at_us": at_us - 5_000_000, "session": 7, "kind": "client backend", "state": "active", "statement": 3}
        view = View("activity", "now", ACTIVITY, [tuple(seen.get(name) for name in shown)])
        made.add([view], engine="postgres", target="shop", at_ns=at_us * 1000, facts={}, cost={"looks": 10})
    return made


@pytest.fixture
def preparer() -> Iterator[Preparer]:
    made = Preparer()
    yield made
    made.end()


def test_a_page_says_that_sums_are_being_made_and_then_shows_the_stretch(
    store: Store, preparer: Preparer, tmp_path: Path
) -> None:
    browser = Browser(tmp_path / "runs", store.folder, preparer)
    first = Seen(browser.get("/server?window=7d").text)
    assert WAITS in first.words and f"of {WANTED} sums by hour and day are ready" in first.words
    assert any(given.get("data-follows") == "sums" for _, given in first.tags), "an open page follows"
    latest = Seen(browser.get("/latest?part=1").text).words
    assert latest.count("are ready") == 2 and "Nothing" not in latest, "the first page says it too, of both parts"
    deadline = time.monotonic() + 60
    while WAITS in (page := browser.get("/server?window=7d").text):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert "By statement" in page, Seen(page).words
    known = list(store)
    made, wanted = progress(store, known)
    assert made == wanted == WANTED


def test_a_store_whose_sums_cannot_be_written_is_shown_all_the_same(
    store: Store, preparer: Preparer, tmp_path: Path
) -> None:
    (store.folder / "sums").write_text("a file where the folder should be")
    assert "By statement" in Browser(tmp_path / "runs", store.folder, preparer).get("/server?window=7d").text


def test_without_the_process_a_page_makes_them_itself(store: Store, tmp_path: Path) -> None:
    assert "By statement" in Browser(tmp_path / "runs", store.folder).get("/server?window=7d").text


def test_what_is_there_is_not_made_again(store: Store, preparer: Preparer) -> None:
    known = list(store)
    prepare(store, known[0], known[-1])
    times = [one.stat().st_mtime_ns for one in (store.folder / "sums").glob("*/*/*/*.json")]
    preparer.check(store, known)
    prepare(store, known[0], known[-1])
    assert [one.stat().st_mtime_ns for one in (store.folder / "sums").glob("*/*/*/*.json")] == times
    shutil.rmtree(store.folder / "sums")
    assert progress(store, known)[0] == 0
