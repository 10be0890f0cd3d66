"""Hostile logs: synthetic plans in every format, damaged and mixed, and texts that are meant to be slow to read.

    python -m pytest -s -m soak tests/snapshot/test_plans_fuzz.py    # prints its seed; DBDYNO_FUZZ_SEED repeats one

For all of them, the processor time grows linearly with the length, only the reader's own error is raised, a plan has
the same identity in all four formats, and no value is kept.
"""

from __future__ import annotations

import io
import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from xml.sax.saxutils import escape

import pytest

from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.plans.entries import Clock
from dbdyno.snapshot.plans.executions import GatheredExecutions
from dbdyno.snapshot.plans.explain import CONDITIONS, TextPlans, UnreadPlanError, read_json
from dbdyno.snapshot.plans.markup import read_xml, read_yaml
from dbdyno.snapshot.plans.reader import read
from dbdyno.snapshot.plans.source import log_of_stream
from dbdyno.snapshot.plans.tree import identity, walk
from dbdyno.snapshot.plans.values import mask_condition, mask_statement

SECRET = "s3cr3t"
LONG = 60_000
MOST_CPU_S = 10
"""Limit of processor time for 60 KB, which normally take 10 ms; with quadratic time they would take minutes [s]."""
STAMP = "2026-11-21 00:59:57.437 UTC"


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("DBDYNO_FUZZ_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}")
    return random.Random(seed)


@contextmanager
def cpu_limit(what: str) -> Iterator[None]:
    """Limit the processor time of this process, independently of other load on the machine."""

    def over(number: int, frame: object) -> None:
        raise AssertionError(f"{MOST_CPU_S} s of processor time and no end: {what[:300]!r}")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


NAMES = ("orders", "o r", 'q"t', "größe", "a_b", "cost=1", "x->y", "rows", "SubPlan", "Filter")
CLAUSES = (
    f"(cust = '{SECRET}'::text)",
    f"(note ~~ '%''{SECRET}''%'::text)",
    f"((a > 5) AND (b = ANY ('{{{SECRET},2}}'::text[])))",
    f"(x = E'\\n  ->  Seq Scan on {SECRET}  (cost=0.00..1.00 rows=1 width=4)')",
    f"((\"{'n' * 20}\")::text <> '{SECRET}: Filter: (1)'::text)",
)


def made(dice: random.Random, depth: int = 0) -> JsonObject:
    """Return a random plan in the form of auto_explain's JSON."""
    node: JsonObject = {"Node Type": dice.choice(("Seq Scan", "Index Scan", "Nested Loop", "Sort", "Result"))}
    if node["Node Type"].endswith("Scan"):
        node |= {"Relation Name": dice.choice(NAMES), "Alias": dice.choice(NAMES)}
    if node["Node Type"] == "Index Scan":
        node["Index Name"] = dice.choice(NAMES)
    node |= {"Plan Rows": dice.randrange(10**6), "Plan Width": 4}
    if dice.random() < 0.7:
        node |= {"Actual Rows": dice.randrange(10**6), "Actual Loops": dice.choice((0, 1, 7))}
    for name in dice.sample(CONDITIONS, dice.randrange(3)):
        node[name] = dice.choice(CLAUSES)
    if depth < 4 and not node["Node Type"].endswith("Scan"):
        node["Plans"] = [made(dice, depth + 1) for _ in range(dice.randrange(1, 3))]
    return node


def quoted(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").isalpha() and name.islower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def as_text(node: JsonObject, depth: int = 0) -> list[str]:
    """Return the same plan as lines of EXPLAIN's text."""
    title = node["Node Type"] + (f" using {quoted(node['Index Name'])}" if "Index Name" in node else "")
    if "Relation Name" in node:
        alias = "" if node["Alias"] == node["Relation Name"] else f" {quoted(node['Alias'])}"
        title += f" on {quoted(node['Relation Name'])}{alias}"
    title += f"  (cost=0.00..1.00 rows={node['Plan Rows']} width=4)"
    if "Actual Rows" in node:
        found = f"rows={node['Actual Rows']} loops={node['Actual Loops']}"
        title += f" (actual time=0.01..0.02 {found})" if node["Actual Loops"] else " (never executed)"
    indent = 6 * depth
    lines = [(" " * (indent - 4) + "->  " if depth else "") + title]
    lines += [" " * (indent + 2) + f"{name}: {node[name]}" for name in CONDITIONS if name in node]
    return lines + [line for child in node.get("Plans", ()) for line in as_text(child, depth + 1)]


def as_yaml(node: JsonObject, indent: int) -> list[str]:
    lines = []
    for name, value in node.items():
        if name == "Plans":
            lines.append(" " * indent + "Plans: ")
            for child in value:
                below = as_yaml(child, indent + 4)
                lines += [" " * (indent + 2) + "- " + below[0].lstrip(), *below[1:]]
        else:
            lines.append(" " * indent + f"{name}: {json.dumps(value, ensure_ascii=False)}")
    return lines


def as_xml(name: str, value: Any) -> str:
    if isinstance(value, dict):
        words = "".join(as_xml(one.replace(" ", "-"), inner) for one, inner in value.items())
    elif isinstance(value, list):
        words = "".join(as_xml("Plan", one) for one in value)
    else:
        words = escape(str(value))
    return f"<{name}>{words}</{name}>"


def forms(plan: JsonObject, text: str) -> dict[str, str]:
    """Return what follows `plan:` in the log, in each of the four formats."""
    whole = {"Query Text": text, "Plan": plan}
    return {
        "text": "\n".join((f"Query Text: {text}", *as_text(plan))),
        "json": json.dumps(whole, indent=2, ensure_ascii=False),
        "xml": as_xml("explain", whole),
        "yaml": "\n".join((f"Query Text: {json.dumps(text)}", "Plan: ", *as_yaml(plan, 2))),
    }


READERS: dict[str, Callable[[str], Any]] = {
    "text": lambda text: TextPlans().read(text),
    "json": read_json,
    "xml": read_xml,
    "yaml": read_yaml,
}


def one_plan_in_four_forms(dice: random.Random) -> None:
    plan = made(dice)
    text = f"select * from t where a = '{SECRET}'"
    found = {name: READERS[name](form) for name, form in forms(plan, text).items()}
    for name, (said, explained) in found.items():
        assert identity(explained.plan) == identity(found["json"][1].plan), (name, plan)
        assert (explained.rows_planned, explained.misestimate) == (
            found["json"][1].rows_planned,
            found["json"][1].misestimate,
        ), (name, plan)
        assert SECRET not in mask_statement(said)
        assert not any(SECRET in words for _, node in walk(explained.plan) for _, words in node.conditions), name


def torn_and_mixed(dice: random.Random) -> None:
    """Cut, double and mix formats: the reader raises its own error, or returns a plan with no more nodes than lines."""
    parts = [*forms(made(dice), SECRET).values(), *forms(made(dice), "x").values()]
    name, text = dice.choice(sorted(READERS)), dice.choice(parts)
    for _ in range(dice.randrange(1, 5)):
        other, at = dice.choice(parts), dice.randrange(len(text) + 1)
        piece = other[dice.randrange(len(other)) :][: dice.randrange(200)]
        text = text[:at] + piece + text[at + dice.randrange(40) :]
    try:
        _, explained = READERS[name](text)
    except UnreadPlanError:
        return
    assert sum(1 for _ in walk(explained.plan)) <= len(text)


TOKENS = (
    *("'", '"', "\\", "$a$", "$", "E'", "/*", "*/", "--", "\n", "\n\t", " ", "  ", "->  ", "(", ")", "(cost=", "rows="),
    *("1", "1.5", "e-", "x", "_", ".", ",", "?", "::", "[]", "Seq Scan", " on ", " using ", "SubPlan 1", "CTE x"),
    *("Filter: ", "Index Cond: ", "Query Text: ", "Buffers: shared", " hit=1", "- ", "Plans: ", "<a>", "</a>", "<!"),
    *('{"Plan":', "[", "}", "duration: 1.0 ms", "  plan:", "LOG:  ", "STATEMENT:  ", f"{STAMP} [1] ", "#011", "Z: "),
)


def slow_to_read(dice: random.Random) -> None:
    """Repeat a few tokens many times, for which a pattern with backtracking would take minutes."""
    few = "".join(dice.choice(TOKENS) for _ in range(dice.randrange(1, 6)))
    head = "".join(dice.choice(TOKENS) for _ in range(dice.randrange(4)))
    text = (head + few * LONG)[:LONG]
    whole = f"Query Text: x\nSeq Scan on t  (cost=0.00..1.00 rows=1 width=4)\n{text}"
    with cpu_limit(head + few):
        mask_statement(text)
        mask_condition(text)
        for name, form in (("text", whole), ("json", text), ("xml", f"<a>{text}"), ("yaml", text)):
            try:
                READERS[name](form)
            except UnreadPlanError:
                continue
        with GatheredExecutions() as gathered:
            read(
                [log_of_stream("a", io.BytesIO(f"{STAMP} [1] LOG:  duration: 1.0 ms  plan:\n\t{whole}".encode()))],
                gathered,
                Clock(),
            )


def whole_logs(dice: random.Random) -> None:
    """Read a log with all four formats: one execution for each plan, and no value is kept."""
    several = [form for _ in range(3) for form in forms(made(dice), f"select '{SECRET}'").values()]
    lines = [f"duration: {at}.5 ms  plan:\n{form}".replace("\n", "\n\t") for at, form in enumerate(several)]
    content = "".join(f"{STAMP} [{at}] LOG:  {line}\n" for at, line in enumerate(lines))
    with GatheredExecutions() as gathered:
        [file] = read([log_of_stream("a", io.BytesIO(content.encode()))], gathered, Clock())
        assert (file.executions, file.unread.counts) == (len(several), {})
        for name in ("log_executions", "log_statements", "log_plans"):
            for row in gathered.connection.execute(f"from {name}").fetchall():
                assert SECRET not in repr(row)
        (plans,) = gathered.connection.execute("select count(distinct plan) from log_executions").fetchone() or (0,)
        assert plans <= 3


KINDS: dict[Callable[[random.Random], None], tuple[int, int]] = {
    one_plan_in_four_forms: (60, 20_000),
    torn_and_mixed: (60, 20_000),
    slow_to_read: (3, 400),
    whole_logs: (2, 200),
}
"""Number of tries of each kind, by default and in a soak."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_a_few_hostile_logs(kind: Callable[[random.Random], None], dice: random.Random) -> None:
    for _ in range(KINDS[kind][0]):
        kind(dice)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_many_hostile_logs(kind: Callable[[random.Random], None], dice: random.Random) -> None:
    for _ in range(KINDS[kind][1]):
        kind(dice)


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_condition_has_its_name_in_xml_too(name: str) -> None:
    """`One-Time Filter` became `One Time Filter` in XML, and was lost from the plan."""
    plan = {"Node Type": "Result", "Plan Rows": 1, "Plan Width": 4, name: "(a > 5)"}
    found = {form: READERS[form](text)[1].plan.conditions for form, text in forms(plan, "x").items()}
    assert set(found.values()) == {((name, "(a > ?)"),)}


def test_a_literal_with_the_costs_of_a_node_ends_no_condition() -> None:
    plan = {"Node Type": "Result", "Plan Rows": 1, "Filter": "((a = 'x  (cost=0.00..1.00 rows=1 width=4)') AND b)"}
    found = {form: READERS[form](text)[1].plan.conditions for form, text in forms(plan, "x").items()}
    assert set(found.values()) == {(("Filter", "((a = ?) AND b)"),)}
