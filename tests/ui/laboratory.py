"""The laboratory of these tests: its plan, its part of the planted day, and hostile texts."""

from __future__ import annotations

from planted_day import BEGIN_S, DAY_S

HOSTILE = "</script><img src=x onerror=alert(1)>'\"--&amp;{{7*7}}\u2028\u202e\x1b[31m${x}`'];//"
PLAN = """\
title = "work_mem for the nightly sort"
target = "mock:"
[workload]
kind = "mock"
[schedule]
blocks = 6
warmup_blocks = 0
turn = "40ms"
slice = "10ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "4MB"
[[arm]]
name = "64MB"
"""
FIRST_S = BEGIN_S + DAY_S + 13 * 3600 + 50 * 60
"""Start of the laboratory, 13:50 on the planted day; the lock queue begins at 14:03 [s]."""
MINUTES = 24
