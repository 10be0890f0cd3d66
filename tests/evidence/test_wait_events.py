"""The catalogue of wait events in Python: each event has one class, in every spelling and for every caller."""

from __future__ import annotations

import pytest

from dbdyno import _core
from dbdyno.evidence.events import CLASSES, wait_class
from dbdyno.report.figures import theme


@pytest.mark.parametrize(
    ("event_type", "event", "expected"),
    [
        ("IO", "WALSync", "commit"),
        ("IO", "WalSync", "commit"),
        ("LWLock", "WALWriteLock", "commit"),
        ("LWLock", "WALWrite", "commit"),
        ("LWLockNamed", "WALWriteLock", "commit"),
        ("IO", "WALWrite", "log write"),
        ("IO", "DataFileRead", "data read"),
        ("IO", "BufFileWrite", "data write"),
        ("IO", "BuffileWrite", "data write"),
        ("IPC", "BufferIO", "data read"),
        ("Lock", "transactionid", "lock"),
        ("Lock", "a type of tomorrow", "lock"),
        ("LWLock", "buffer_content", "latch"),
        ("BufferPin", "BufferPin", "latch"),
        ("Client", "ClientRead", "network"),
        ("Activity", "WalWriterMain", "idle"),
        ("Timeout", "PgSleep", "idle"),
        ("Extension", "Extension", "other"),
        ("Martian", "Gravity", "other"),
        ("CPU", "CPU", "CPU"),
        (None, None, "CPU"),
    ],
)
def test_events_have_a_class_in_every_spelling(event_type: str | None, event: str | None, expected: str) -> None:
    assert wait_class("postgresql", event_type, event) == expected


def test_nobodys_commit_waits_for_a_background_process() -> None:
    assert wait_class("postgresql", "IO", "WalSync", background=True) == "log write"
    assert wait_class("postgresql", "IO", "DataFileWrite", background=True) == "data write"


def test_a_snapshot_and_a_trace_agree_about_an_oracle_event() -> None:
    for event, found, own, _ in _core.wait_events("oracle"):
        if "%" not in event:
            assert wait_class("oracle", own, event) == wait_class("oracle", None, event) == found, event


def test_every_class_has_a_colour_of_its_own() -> None:
    colours = [theme.class_colour(name) for name in CLASSES]
    assert len(set(colours)) == len(CLASSES)


def test_an_engine_without_a_catalogue_is_an_error() -> None:
    with pytest.raises(ValueError, match="oracle, postgresql, mariadb"):
        _core.wait_class("nonesuch", "", "log file sync")
