"""The beginning of a plan on the mock, whose times are what the test plants."""

from __future__ import annotations


def mock_plan(rest: str = "", *, title: str = "planted", blocks: int = 10, top: str = "", turn: str = "100ms") -> str:
    """A plan's text up to its arms or factors, which are `rest`; `top` stands before the first table."""
    return f"""\
title = "{title}" # a comment
target = "mock:"
{top}
[workload]
kind = "mock"
[schedule]
blocks = {blocks}
warmup_blocks = 1
turn = "{turn}"
slice = "20ms"
[watch]
overhead_blocks = 0
{rest}"""
