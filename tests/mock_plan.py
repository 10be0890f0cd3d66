"""A plan with two arms on the pretended engine, which takes no server and milliseconds."""

from __future__ import annotations

PLAN = """\
title = "{title}"
target = "mock:"
[workload]
kind = "mock"
parameters = {{mean_us = {mean_us}}}
[schedule]
blocks = {blocks}
warmup_blocks = 1
turn = "{turn}"
slice = "20ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "one"
[[arm]]
name = "two"
parameters = {{mean_us = 800}}
"""


def mock_plan(mean_us: int = 1000, *, title: str = "nightly", blocks: int = 4, turn: str = "60ms") -> str:
    """Return a plan whose arm two takes 800 us in the mean, and arm one `mean_us`."""
    return PLAN.format(title=title, mean_us=mean_us, blocks=blocks, turn=turn)
