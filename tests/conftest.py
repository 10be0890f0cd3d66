"""Fixtures of every test: a separate state folder, so that records of changed settings do not mix with the user's."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import pytest

pytest_plugins = [
    "chromium",
    "data_folders",
    "drawings",
    "forked_guardians",
    "light_starts",
    "live_postgres",
    "shared_rewriting",
    "short_canaries",
    "unread_pages",
    "worker_times",
]

_states = itertools.count()

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would all that tests start and send it to.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests: long ones first, then those that read the source, so that one worker gets them all and parses it
    once.

    Tests that need cargo come last, because they wait for its lock while the Rust tests are compiled.
    """

    def turn(item: pytest.Item) -> int:
        for at, name in enumerate(("long", "sources")):
            if item.get_closest_marker(name):
                return at
        return 3 if "evaluate" in getattr(item, "fixturenames", ()) else 2

    items.sort(key=turn)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail if a second run of failed tests leaves one of them out, which would otherwise pass unnoticed."""
    if session.config.getoption("lf", False) and session.config.cache is not None:
        failed = {name for name in session.config.cache.get("cache/lastfailed", {}) if "::" in name}
        if left_out := failed - {item.nodeid for item in session.items}:
            raise pytest.UsageError(f"these failed and are not run again: {', '.join(sorted(left_out))}")


@pytest.fixture(autouse=True)
def owed_apart(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give tests their own configuration and state folder, separate from those of the user who runs them."""
    place = tmp_path_factory.mktemp(f"state-{next(_states)}", numbered=False)
    monkeypatch.setenv("DBDYNO_STATE", str(place))
    monkeypatch.setenv("DBDYNO_CONFIG", str(place / "config.toml"))
    return place / "owed"
