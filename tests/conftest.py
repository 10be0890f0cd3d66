"""What every test has: a folder of its own for what runs owe to servers."""

from __future__ import annotations

import itertools
import signal
from pathlib import Path

import pytest

pytest_plugins = [
    "chromium",
    "data_folders",
    "drawings",
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
    """The long ones first."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def owed_apart(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests neither read the configuration of whoever runs them nor write among their records."""
    place = tmp_path_factory.mktemp(f"state-{next(_states)}", numbered=False)
    monkeypatch.setenv("DBDYNO_STATE", str(place))
    monkeypatch.setenv("DBDYNO_CONFIG", str(place / "config.toml"))
    return place / "owed"
