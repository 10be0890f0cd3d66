"""Steps of a server's clock change no duration, rate or order, and are reported."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
from snapshot_help import Lab, section

from dbdyno.base.errors import SnapshotError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.clock import clock_stamp, clock_verdict, elapsed_ns
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.take import watch

HOUR_NS = 3600 * 10**9


def stepped(one: Snapshot, by_ns: int, *, without_clock: bool = False) -> None:
    """Change a snapshot as if the server's clock had been set before it."""
    path = one.store / f"{one.number:06d}" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["at_ns"] += by_ns
    manifest["facts"]["at_us"] += by_ns // 1000
    if without_clock:
        del manifest["facts"]["clock"]
    path.write_text(json.dumps(manifest))


@pytest.fixture(scope="module")
def watched(engine: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Take four snapshots in one watch, with samples in between; return their store."""
    with Lab(engine, tmp_path_factory.mktemp("clock") / "snaps") as lab:
        found = watch(lab.dsn, lab.store, Options(), every_s=0.2, sample_s=0.05)
        assert all(isinstance(one, Snapshot) for one in itertools.islice(found, 4))
    return lab.store.folder


@pytest.fixture
def store(watched: Path, tmp_path: Path) -> Store:
    """Return a copy of that store."""
    return Store(shutil.copytree(watched, tmp_path / "snaps"))


@pytest.fixture
def taken(store: Store) -> list[Snapshot]:
    return list(store)


@pytest.mark.parametrize(("by_ns", "word"), [(-HOUR_NS, "back"), (HOUR_NS, "forward")])
def test_a_step_of_an_hour_changes_no_duration_and_is_the_verdict(store: Store, taken, by_ns: int, word: str):
    for one in taken[2:]:
        stepped(one, by_ns)
    found = store.snapshots_of(None)
    assert [one.number for one in found] == [1, 2, 3, 4], "in the order of their numbers"
    with Interval(store, found[0], found[-1]) as interval:
        model = report(interval)
        assert 0 < interval.seconds < 60
    assert model["verdict"]["word"] == "clock stepped"
    assert f"set {word} by 60 min between snapshots 2 and 3" in model["verdict"]["why"]
    assert any("clock was set" in warning["text"] for warning in model["warnings"])
    assert model["facts"]["snapshots"] == 4, "none is lost between the two"
    at = model["series"]["at_us"]
    assert at == sorted(at) and at[-1] - at[0] < 60_000_000
    rows = section(model, "load")["tables"][0]["rows"] if any(s["name"] == "load" for s in model["sections"]) else []
    assert all(row.get("verdict", "ok") == "ok" for row in rows), "rates are still known"


def test_without_another_clock_a_step_back_is_refused_in_words(store: Store, taken):
    stepped(taken[0], 0, without_clock=True)
    stepped(taken[-1], -HOUR_NS, without_clock=True)
    found = store.snapshots_of(None)
    with pytest.raises(SnapshotError, match="clock was set back"):
        Interval(store, found[0], found[-1])


def test_a_clock_that_is_slewed_is_none_that_stepped(store: Store, taken):
    stepped(taken[-1], 900_000_000)
    assert clock_verdict(store.snapshots_of(None)) is None


def test_the_duration_is_that_of_the_machine_that_took_both(taken):
    first, last = taken[0], taken[-1]
    own = last.facts["clock"]["since_boot_ns"] - first.facts["clock"]["since_boot_ns"]
    assert elapsed_ns(first, last) == own
    assert clock_stamp()["clock"]["boot"] == first.facts["clock"]["boot"]
