"""Plans on the mock engine, whose transaction times the tests choose."""

from __future__ import annotations


def mock_plan(
    rest: str = "",
    *,
    title: str = "planted",
    blocks: int = 10,
    top: str = "",
    turn: str = "100ms",
    parameters: str = "",
) -> str:
    """Return the text of a plan whose arms or factors are `rest`; `top` comes before the first table.

    `parameters` are those of arms that set none, such as `mean_us = 1000`.
    """
    return f"""\
title = "{title}" # a comment
target = "mock:"
{top}
[workload]
kind = "mock"
parameters = {{{parameters}}}
[schedule]
blocks = {blocks}
warmup_blocks = 1
turn = "{turn}"
slice = "20ms"
[watch]
overhead_blocks = 0
{rest}"""


def two_arms(mean_us: int = 1000, *, title: str = "nightly", blocks: int = 4, turn: str = "60ms") -> str:
    """Return a plan whose arm `one` takes `mean_us` on average, and arm `two` 800 us."""
    arms = '[[arm]]\nname = "one"\n[[arm]]\nname = "two"\nparameters = {mean_us = 800}\n'
    return mock_plan(arms, title=title, blocks=blocks, turn=turn, parameters=f"mean_us = {mean_us}")


DISK_AND_FLASH = """\
[verdict]
operation = "commit"
metric = "p50"
[[arm]]
name = "disk"
settings = {"storage.redo" = "log_sas"}
[[arm]]
name = "flash"
settings = {redo = "log_flash"}
"""


def model_plan(
    rest: str = DISK_AND_FLASH,
    *,
    title: str = "redo on disk and flash",
    blocks: int = 5,
    transactions: int = 300,
) -> str:
    """Return a plan of commits on a model; its arms, and how they are judged, are `rest`."""
    return f"""\
title = "{title}"
target = "model:sas-and-flash"
[workload]
kind = "commit-loop"
parameters = {{redo_bytes = "512", cpu_us = 50}}
[schedule]
blocks = {blocks}
transactions = {transactions}
warmup_transactions = 20
{rest}"""
