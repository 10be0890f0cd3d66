"""Plans that auto_explain wrote in text, JSON, XML or YAML, parsed to the same tree.

    Aggregate  (cost=8.49..8.50 rows=1 width=8) (actual time=0.045..0.046 rows=1 loops=1)
      ->  Index Scan using orders_cust on orders  (cost=0.29..8.46 rows=10 width=4) (actual …)
            Index Cond: (cust = 77)

Most plans in a log repeat earlier ones with other numbers: the text of a plan is reduced to the parts that make its
shape, and parsed only if that reduced text is new. Limit: if a grouping has several keys, they are not part of the
shape.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbdyno.snapshot.plans.entries import queryid_of
from dbdyno.snapshot.plans.misestimates import FACTOR, Misestimate, NodeNumbers, first_misestimate, misestimate_factor
from dbdyno.snapshot.plans.tree import DEEPEST, USUAL_SCHEMAS, Node
from dbdyno.snapshot.plans.values import mask_condition

CONDITIONS = (
    *("Index Cond", "Recheck Cond", "Filter", "Join Filter", "Hash Cond", "Merge Cond", "One-Time Filter"),
    *("TID Cond", "Order By", "Sort Key", "Presorted Key", "Cache Key", "Run Condition", "Conflict Filter"),
)
"""Properties of a node that are part of the shape."""
NODES_MOST = 5000


class UnreadPlanError(ValueError):
    """Error for a plan that is invalid or cut off; the message says why."""


@dataclass(frozen=True, slots=True)
class ExplainedPlan:
    """A plan with its measurements, which are None if auto_explain did not record them (log_analyze, log_buffers).

    Attributes:
        plan: The tree.
        queryid: The statement's identifier (log_verbose).
        rows_planned: Estimated rows of the root.
        rows: Actual rows of the root.
        misestimate: Factor by which the rows of the worst node differ from the estimate.
        hits: Shared blocks found in the cache.
        reads: Shared blocks read.
        wrong: The node at which the misestimate begins.
        numbers: Rows and time of each node, each before those below it.
    """

    plan: Node
    queryid: int | None = None
    rows_planned: int | None = None
    rows: int | None = None
    misestimate: float | None = None
    hits: int | None = None
    reads: int | None = None
    wrong: Misestimate | None = None
    numbers: Sequence[NodeNumbers] = ()


_ROOT = re.compile(r"^[^\s\n][^\n]*  \(cost=\d[^\n]*", re.M)
_KEPT = re.compile(
    r"^ *+(?:->  )?(?:(?:"
    + "|".join(CONDITIONS)
    + r"): (?:[^\n'\"]|'[^']*+'|\"[^\"]*+\")*+"
    + r"|[^\s:\"(](?:[^\n\"]|\"[^\"\n]*+\")*?(?=  \(cost=)|(?:SubPlan|InitPlan|CTE) [^\n]*+)",
    re.M,
)
"""Pattern of the lines that make the shape; conditions come first, since a literal in them may look like a node."""
_ROWS = re.compile(
    r"\(cost=[\d.]++ rows=(\d++) width=\d++\)"
    r"(?: \(actual (?:time=\d++(?:\.\d++)?\.\.(\d++(?:\.\d++)?) )?rows=([\d.]++) loops=(\d++)\))?"
)
_BUFFERS = re.compile(r"^ *+Buffers: shared(?: hit=(\d++))?(?: read=(\d++))?", re.M)
_QUERYID = re.compile(r"^Query Identifier: (-?\d{1,20})$", re.M)
_IDENT = r'(?:"(?:[^"]|"")*+"|[^\s".]++)'
_TITLE = re.compile(
    rf"(?P<kind>[A-Za-z][^\"]*?)(?: using (?P<index>{_IDENT}))?"
    rf"(?: on (?P<first>{_IDENT})(?:\.(?P<second>{_IDENT}))?(?: (?P<alias>{_IDENT}))?)?"
)


class TextPlans:
    """Parser of plans in the text format, with a cache of the trees by shape."""

    MOST = 20_000

    def __init__(self) -> None:
        self._known: dict[str, Node] = {}

    def read(self, text: str) -> tuple[str, ExplainedPlan]:
        """Return the statement's text and the plan.

        Raises:
            UnreadPlanError: The text has no valid plan.
        """
        starts = [found.start() for found in _ROOT.finditer(text)]
        if not starts or not text.startswith("Query Text: "):
            raise UnreadPlanError("no plan follows the text of the statement")
        plan = text[starts[-1] :]
        statement = text[len("Query Text: ") : starts[-1]].rstrip("\n").partition("\nQuery Parameters: ")[0]
        shape = "\n".join(_without_values(line) for line in _KEPT.findall(plan))
        tree = self._known.get(shape)
        if tree is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            tree = self._known[shape] = _parsed(shape.split("\n"))
        return statement, _measured(tree, plan)


def _without_values(line: str) -> str:
    """Return a line of the shape with its values replaced and its indentation kept."""
    name, colon, value = line.partition(": ")
    return f"{name}: {mask_condition(value)}" if colon and name.strip() in CONDITIONS else line


def _measured(tree: Node, plan: str) -> ExplainedPlan:
    rows = _ROWS.findall(plan)
    if not rows:
        raise UnreadPlanError("the root of the plan has no estimate")
    whole = plan.partition("\nPlanning:\n")[0]
    buffers = _BUFFERS.search(whole)
    queryid = _QUERYID.search(plan)
    numbers = [
        NodeNumbers(int(est), float(act) if act else None, int(loops or 0), float(ms) if ms else None)
        for est, ms, act, loops in rows
    ]
    worst, wrong = _misestimates(tree, numbers)
    return ExplainedPlan(
        tree,
        int(queryid[1]) if queryid else None,
        int(rows[0][0]),
        round(float(rows[0][2])) if rows[0][2] else None,
        worst,
        int(buffers[1] or 0) if buffers else None,
        int(buffers[2] or 0) if buffers else None,
        wrong,
        numbers,
    )


def _misestimates(tree: Node, numbers: list[NodeNumbers]) -> tuple[float | None, Misestimate | None]:
    """Return the factor of the worst node, and the node at which the misestimate begins."""
    known = (misestimate_factor(one.planned, one.found) for one in numbers if one.found is not None and one.loops)
    worst = max(known, default=None)
    return worst, first_misestimate(tree, numbers) if worst is not None and worst >= FACTOR else None


def _parsed(lines: list[str]) -> Node:
    """Return the tree of a shape's lines, using a stack of nodes by indentation."""
    if len(lines) > NODES_MOST:
        raise UnreadPlanError(f"the plan has more than {NODES_MOST} lines")
    stack: list[tuple[int, Node, list[Node], list[tuple[str, str]]]] = []
    label = ""

    def close(indent: int) -> Node | None:
        done: Node | None = None
        while stack and stack[-1][0] >= indent:
            _, node, children, conditions = stack.pop()
            done = replace(node, children=tuple(children), conditions=tuple(conditions))
            if stack:
                stack[-1][2].append(done)
        return done

    for line in lines:
        words = line.lstrip(" ")
        indent = len(line) - len(words)
        name, colon, value = words.partition(": ")
        if colon and name in CONDITIONS:
            if stack:
                stack[-1][3].append((name, value))
        elif words.startswith(("SubPlan ", "InitPlan ", "CTE ")) and not words.startswith("CTE Scan"):
            label = words
            if stack and indent > stack[0][0]:
                close(indent)  # the sub-plan is indented deeper than its siblings
        else:
            if stack and indent <= stack[0][0]:
                raise UnreadPlanError("the plan has two roots")
            close(indent)
            if len(stack) > DEEPEST:
                raise UnreadPlanError(f"the plan is more than {DEEPEST} nodes deep")
            stack.append((indent, parse_node_title(words.removeprefix("->  "), label), [], []))
            label = ""
    found = close(-1)
    if found is None:
        raise UnreadPlanError("the plan has no node")
    return found


def parse_node_title(text: str, label: str = "") -> Node:
    """Return the node of a line such as `Index Scan using i on s.t a`."""
    found = _TITLE.fullmatch(text)
    if found is None:
        return Node(text[:100], label=label)
    relation = _unquoted(found["second"] or found["first"])
    index = _unquoted(found["index"])
    kind = found["kind"]
    schema = _unquoted(found["first"]) if found["second"] else ""
    if kind.endswith("Bitmap Index Scan") or schema in USUAL_SCHEMAS:
        schema = ""
    if kind.endswith("Bitmap Index Scan"):
        relation, index = "", relation
    alias = _unquoted(found["alias"])
    return Node(kind, relation, index, "" if alias == relation else alias, label, schema=schema)


def _unquoted(name: str | None) -> str:
    if not name:
        return ""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def read_json(text: str) -> tuple[str, ExplainedPlan]:
    """Return the statement's text and the plan from auto_explain's JSON.

    Raises:
        UnreadPlanError: The text is not JSON or not a plan.
    """
    try:
        return plan_from_values(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UnreadPlanError(f"the JSON is not a plan ({type(error).__name__})") from error


def plan_from_values(whole: Any) -> tuple[str, ExplainedPlan]:
    """Return the statement's text and the plan from the values parsed from JSON, XML or YAML.

    Raises:
        UnreadPlanError: The values are not a plan, or the plan is too large.
    """
    try:
        numbers: list[NodeNumbers] = []
        root = whole["Plan"]
        tree = _of_json(root, numbers)
        worst, wrong = _misestimates(tree, numbers)
        return str(whole["Query Text"]), ExplainedPlan(
            tree,
            queryid_of(whole.get("Query Identifier")),
            _whole(root, "Plan Rows"),
            _whole(root, "Actual Rows"),
            worst,
            _whole(root, "Shared Hit Blocks"),
            _whole(root, "Shared Read Blocks"),
            wrong,
            numbers,
        )
    except UnreadPlanError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UnreadPlanError(f"the text is not a plan ({type(error).__name__})") from error


def _of_json(given: dict[str, Any], numbers: list[NodeNumbers], depth: int = 0) -> Node:
    if depth > DEEPEST or len(numbers) >= NODES_MOST:
        raise UnreadPlanError("the plan is too large")
    numbers.append(_numbers(given))
    kind = _kind(given)
    relation = str(given.get("Relation Name") or given.get("CTE Name") or given.get("Function Name") or "")
    alias = str(given.get("Alias") or "")
    conditions = tuple(
        (name, mask_condition(", ".join(map(str, value)) if isinstance(value, list) else str(value)))
        for name in CONDITIONS
        if (value := given.get(name)) is not None
    )
    children = tuple(_of_json(child, numbers, depth + 1) for child in given.get("Plans", ()))
    index = str(given.get("Index Name") or "")
    named = relation or (alias if not index else "")
    shown_alias = "" if alias == named else alias
    label, schema = (str(given.get(name) or "") for name in ("Subplan Name", "Schema"))
    return Node(kind, named, index, shown_alias, label, conditions, children, "" if schema in USUAL_SCHEMAS else schema)


def _numbers(given: dict[str, Any]) -> NodeNumbers:
    planned, found = _whole(given, "Plan Rows"), given.get("Actual Rows")
    known = planned is not None and isinstance(found, (int, float)) and 0 <= found < 1 << 62
    taken = given.get("Actual Total Time")
    ms = float(taken) if isinstance(taken, (int, float)) and 0 <= taken < 1 << 62 else None
    return NodeNumbers(
        planned or 0, float(found) if known and found is not None else None, _whole(given, "Actual Loops") or 0, ms
    )


def _kind(given: dict[str, object]) -> str:
    """Return a node's type as the text format writes it."""
    kind, strategy = str(given["Node Type"]), given.get("Strategy")
    if kind == "Aggregate":
        kind = {"Hashed": "HashAggregate", "Sorted": "GroupAggregate", "Mixed": "MixedAggregate"}.get(
            str(strategy), kind
        )
        mode = given.get("Partial Mode")
        kind = f"{mode} {kind}" if mode in ("Partial", "Finalize") else kind
    elif kind == "SetOp":
        kind = f"{'HashSetOp' if strategy == 'Hashed' else 'SetOp'} {given.get('Command', '')}".rstrip()
    elif kind in ("ModifyTable", "Foreign Scan") and given.get("Operation") not in (None, "Select"):
        kind = ("Foreign " if kind == "Foreign Scan" else "") + str(given["Operation"])
    elif kind == "Custom Scan":
        kind = f"Custom Scan ({given.get('Custom Plan Provider', '')})"
    join = given.get("Join Type")
    if join is not None and join != "Inner":
        kind = f"{kind.removesuffix(' Join')} {join} Join"
    if given.get("Scan Direction") == "Backward":
        kind += " Backward"
    return ("Parallel " if given.get("Parallel Aware") is True else "") + kind


def _whole(given: dict[str, Any], name: str) -> int | None:
    value = given.get(name)
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1 << 62
    return round(value) if known and value is not None else None
