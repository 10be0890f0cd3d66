"""Thirty planted causes, each in the same mixed load: named first, with the right share, in the headline."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from planted_cases import CASES
from planted_mix import USUAL, Mix, found
from snapshot_help import SETTINGS, Lab

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from slow_storage import SlowStorage
from standby import Standby, open_to_standbys

SHARE_WITHIN = 0.2
CHEAP = ("a_dropped_index", "a_setting_of_a_role", "a_sequence_without_a_cache")
"""Cases that run with every test run; the others are for the soak."""


@pytest.fixture
def mix(name: str, lab: Lab, tmp_path: Path) -> Iterator[Mix]:
    """Yield the load, on a separate server if the cause is in the server or its storage."""
    with contextlib.ExitStack() as stack:
        own: EmbeddedPostgres | None = None
        if name.endswith("slow_device"):
            if shutil.which("cc") is None:
                pytest.skip("cc not found: apt-get install gcc")
            own = stack.enter_context(SlowStorage(settings=SETTINGS))
        elif name in ("a_cold_cache_after_a_restart", "a_standby_that_does_not_replay"):
            own = stack.enter_context(EmbeddedPostgres(settings=SETTINGS))
        made = Mix(stack.enter_context(Lab(own, tmp_path / "own")) if own else lab)
        made.lab.run(*USUAL)
        if own and "standby" in name:
            if Standby.missing(own):
                pytest.skip(str(Standby.missing(own)))
            open_to_standbys(own)
            made.lab.run("select pg_create_physical_replication_slot('second')")
            made.standby = stack.enter_context(Standby(own, "second", max_standby_streaming_delay="-1"))
            made.lab.run(
                "alter system set synchronous_standby_names = '*'",
                "alter system set synchronous_commit = remote_apply",
                "select pg_reload_conf()",
            )
        yield made


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in CHEAP else pytest.mark.soak) for n in CASES])
def test_it_is_named_first_with_its_share_and_in_the_headline(
    name: str, mix: Mix, major: int, request: pytest.FixtureRequest
) -> None:
    """The share is compared in the soak only: clients that wait for a processor beside other tests see another one."""
    case = CASES[name](mix)
    seen = found(mix, case, pause_s=0.02 if major >= 15 else 1.1)
    print(seen.verdict, *seen.rows, f"clients saw {seen.truth}", sep="\n")
    assert str(seen.first.get("what", "")).startswith(case.first)
    assert case.says in seen.first["evidence"]
    assert re.match(case.title, seen.verdict["title"])
    if case.share and request.node.get_closest_marker("soak"):
        assert seen.first["share"] == pytest.approx(seen.truth, abs=SHARE_WITHIN)
