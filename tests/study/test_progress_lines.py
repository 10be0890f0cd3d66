"""Progress lines that a log gets during a run."""

import io
import time

from dbdyno.study.run.progress import LineProgress


def test_what_came_before_the_first_block_is_in_no_estimate(monkeypatch):
    """Engines that take four minutes to start and answer once made "8 min left" of two."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    said = io.StringIO()
    lines = LineProgress(said)
    lines.begin("run", 9, 0, None)
    now[0] += 240
    lines.tick(0, "warmup", "a", 0)
    now[0] += 10
    lines.tick(0, "warmup", "a", 5)
    lines.block(0, "warmup", {}, [])
    assert said.getvalue().splitlines() == ["run run: 9 blocks", "block 1/9 (warm-up): 80 s left"]


def test_a_run_that_ticks_not_once_is_timed_from_its_beginning(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    said = io.StringIO()
    lines = LineProgress(said)
    lines.begin("run", 3, 0, 2.0)
    now[0] += 1
    lines.block(0, "run", {"a": 3.0}, [])
    assert said.getvalue().splitlines() == ["run run: 3 blocks, about 2 s", "block 1/3: a 3.0/s, 2 s left"]
