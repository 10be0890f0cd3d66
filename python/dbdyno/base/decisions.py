"""Tables of all verdicts and gates: meaning, appearance and exit code of a verdict, condition and effect of a gate.

`stats` decides, `study` writes the decision into analysis.json, `report` draws it and the commands exit with its code;
all of them read these tables. A test checks docs/explanation/method.md against them.

A gate whose effect is `withholds` removes the verdict of the arms it concerns: their comparison does not answer the
question. A gate that `warns` is shown beside the verdict: the comparison is valid, but a reader has to know. The gate
"blocks" makes a verdict provisional. A plan may accept a gate by its code (`accept = ["work"]` under [verdict]); that
gate then only warns.

    >>> DECISIONS["no verdict"].word, DECISIONS["no verdict"].exit_of_run
    ('No verdict', 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Decision:
    """One possible decision.

    `tone` selects its colour: `good`, `bad`, `even` or `doubt`. The exit codes are those of `dbdyno run` and `dbdyno
    compare`.
    """

    name: str
    word: str
    tone: Literal["good", "bad", "even", "doubt"]
    exit_of_run: int
    exit_of_compare: int
    when: str


NO_VERDICT = "no verdict"
FAILED = "failed"
PROVISIONAL = "provisional"
UNCLEAR = "unclear"

_TABLE = (
    Decision("faster", "Faster", "good", 0, 0, "the headline metric is better, q at most 1 - level"),
    Decision("slower", "Slower", "bad", 0, 1, "the headline metric is worse, q at most 1 - level"),
    Decision("same", "No difference that matters", "even", 0, 0, "the whole interval is within the threshold"),
    Decision(UNCLEAR, "Cannot tell", "doubt", 0, 0, "none of these"),
    Decision(
        PROVISIONAL,
        "Provisional",
        "doubt",
        0,
        0,
        "one of the verdicts above, but from fewer blocks than the level needs",
    ),
    Decision(NO_VERDICT, "No verdict", "bad", 1, 1, "a gate that withholds has failed"),
    Decision(FAILED, "Failed", "bad", 2, 2, "every transaction of an arm failed"),
    Decision("found", "Found", "even", 0, 0, "a curve, a sweep or a correlation shows what was looked for"),
    Decision(
        "not found", "Not found", "even", 0, 0, "a curve or a correlation does not show it, a trend has no change"
    ),
    Decision("noise floor", "Noise floor", "even", 0, 0, "one arm against itself (`--aa`)"),
    Decision("measured", "Measured", "even", 0, 0, "a probe of a single log, or an engine compared with a model"),
)
DECISIONS = {answer.name: answer for answer in _TABLE}


Effect = Literal["withholds", "provisional", "warns"]


@dataclass(frozen=True, slots=True)
class GateRule:
    """One gate: its code, its effect on the verdict and the condition under which it fails."""

    code: str
    effect: Effect
    fails: str


_FAILS: dict[Effect, dict[str, str]] = {
    "withholds": {
        "errors": "more than 5 % of an arm's transactions failed, or the arms' shares differ by more than half the "
        "threshold",
        "arrivals": "open loop: more than 5 % of an arm's arrivals were dropped, or the arms' shares differ by more "
        "than half the threshold",
        "work": "the arms differ by more than 1 % in rows per transaction",
        "answers": "a captured run: more than 1 % of an arm's statements had another outcome than in the capture",
        "level": "the base's mean latency rose by half or fell by a third over the run, certain at 99 %, and the "
        "ratio to it, within blocks, moved with it or may have done so",
        "difference": "the difference between the arms moved over the run, certain at 99 %, and changes its sign "
        "within the run",
        "premise": "`tail_times`: the base's longest operation is shorter than this multiple of the median: "
        "no tail to judge",
        "invariants": "on a model: a conservation law is broken",
        "switched": "on cells: redo writes raced no more often with the flash log on than with it off",
    },
    "provisional": {
        "blocks": "fewer blocks than chance alone needs: n < 1 + log2(1 / (1 - level))",
    },
    "warns": {
        "missing": "more than a tenth of the blocks gave no number",
        "drift": "a metric or canary moved by 5 % or more, certain at 99 %, or by half or more, certain or not",
        "moving": "the difference between the arms moved by 5 % or more, and by more than half of itself, certain at "
        "99 %",
        "stall": "no session got an answer for half a second and twenty times the usual time",
        "clock": "the wall clock was stepped during the run",
        "processors": "commands: other programs used more than a tenth of this host's processors during the run",
        "operations": "an arm's slice or turn holds fewer than 5 transactions of each session; fewer than one where "
        "turns are counted in transactions, or are of one session",
        "independence": "successive blocks' log ratios correlate by more than 2 / sqrt(n)",
        "cut off": "latencies pile up at their maximum, or the maxima of two arms are equal",
        "tail": "p99 is judged, but blocks have too few transactions to compute it",
        "dropped": "open loop: an arrival was dropped",
        "generator": "open loop: in a tenth of the blocks the load generator itself was late by over 1 ms",
        "hosts": "many hosts: one host's answers took a quarter longer than those of the others, in most blocks",
        "host clocks": "many hosts: more than a tenth of the operations began before all hosts had started",
        "writes": "on cells: a turn saw fewer than 1,000 redo writes",
        "others": "on cells: more than 5 % of redo writes raced although the flash log was off",
        "counters": "on cells: the race's counters do not add up",
    },
}
"""Condition under which each gate fails, by the gate's effect on the verdict."""
RULES = {code: GateRule(code, effect, fails) for effect, rows in _FAILS.items() for code, fails in rows.items()}
WITHHOLDING = tuple(_FAILS["withholds"])


def decision_named(name: Any) -> Decision:
    """Return the decision with this name, or the decision "Cannot tell" for an unknown name."""
    return DECISIONS.get(name, DECISIONS[UNCLEAR]) if isinstance(name, str) else DECISIONS[UNCLEAR]


def exit_code(verdict: Mapping[str, Any], command: Literal["run", "compare"]) -> int:
    """Return the exit code of a command for a verdict of analysis.json: the worst code of its decisions.

    An arm whose verdict was withheld counts, even if the headline is about another arm.
    """
    names = [verdict.get("decision"), *(entry.get("decision") for entry in verdict.get("withheld") or [])]
    answers = [decision_named(name) for name in names]
    return max(a.exit_of_run if command == "run" else a.exit_of_compare for a in answers)
