"""Pig's logical plans, with all optimizer rules and with none; Pig reports them without running the script.

Each rule is switched off by name, because `-t All` of Pig 0.18 still pushes filters up.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.base.errors import FlowError
from dbdyno.flow.step import Flow, Kind, Step
from dbdyno.flow.tables import text_of

RULES = (
    *("ConstantCalculator", "SplitFilter", "PushUpFilter", "MergeFilter", "PushDownForeachFlatten", "LimitOptimizer"),
    *("ColumnMapKeyPrune", "AddForEach", "MergeForEach", "GroupByConstParallelSetter", "PartitionFilterOptimizer"),
    "PredicatePushdownOptimizer",
)
OFF = f"-t for each of {len(RULES)} rules"
HOME = "DBDYNO_PIG"
INSTALL = f"run `make setup-wide` in a clone of dbdyno, or set {HOME} to a folder with Pig's jars"
TIME_S = 300
OPTIONS = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED", "-Xmx512m")
_KINDS = {
    "Load": Kind.SCAN,
    "Filter": Kind.FILTER,
    "Join": Kind.JOIN,
    "Cross": Kind.JOIN,
    "Cogroup": Kind.GROUP,
    "Sort": Kind.SORT,
    "Limit": Kind.LIMIT,
    "Distinct": Kind.DISTINCT,
    "Union": Kind.UNION,
    "ForEach": Kind.PROJECT,
    "Store": Kind.PROJECT,
    "Split": Kind.PROJECT,
    "SplitOutput": Kind.FILTER,
}
_INNER = ("Generate", "InnerLoad")
_OPERATOR = re.compile(r"(?<![^\s|-])(?:([^\s:|]++): )?\(Name: LO(\w++)")
_INSIDE = re.compile(r"(?<![^\s|-])(?:([^\s:|]++(?:::[^\s:|]++)*+):)?\(Name: (\w++)")
_CONSTANT = re.compile(r"Constant\((.*)\) - scope-\d+\s*$")
_STORE = re.compile(r"(?i)\bstore\s+\w+\s+into\s+'([^']+)'(?:\s+using\s+PigStorage\s*\(\s*'([^']+)'\s*\))?")
_SIGNS = {
    "Equal": "=",
    "NotEqual": "!=",
    "GreaterThan": ">",
    "GreaterThanEqual": ">=",
    "LessThan": "<",
    "LessThanEqual": "<=",
}


@dataclass
class _Node:
    column: int
    name: str
    alias: str
    inside: list[tuple[int, str, str]] = field(default_factory=list)
    below: list[_Node] = field(default_factory=list)


def jars() -> Path:
    """Return the folder with Pig's jars.

    Raises:
        FlowError: The jars or Java are missing.
    """
    import os

    named = os.environ.get(HOME)
    place = Path(named) if named else Path(__file__).resolve().parents[3] / "target" / "wide" / "pig" / "lib"
    if not any(place.glob("pig-*.jar")):
        raise FlowError("Pig is not installed", where="--engine pig", next_step=INSTALL)
    if shutil.which("java") is None:
        raise FlowError("Java is not installed", where="--engine pig", next_step="install Java 17")
    return place


def flow(script: Path) -> Flow:
    """Return both plans of a script.

    Raises:
        FlowError: Pig is missing or reports an error.
    """
    return Flow("pig", _plan(script, *(word for rule in RULES for word in ("-t", rule))), _plan(script), OFF)


def rows(script: Path) -> tuple[list[Any], list[Any]]:
    """Return the rows that the script stores without the rules, and those with them.

    The script runs in a temporary folder with links to the files beside the script, so nothing is written into the
    user's folder.

    Raises:
        FlowError: Pig is missing or reports an error, or the script does not store exactly one result.
    """
    off = tuple(word for rule in RULES for word in ("-t", rule))
    return _store_statements(script, *off), _store_statements(script)


def _store_statements(script: Path, *options: str) -> list[Any]:
    found = _STORE.findall(text_of(script))
    if len(found) != 1:
        raise FlowError(
            f"has {len(found)} STORE statements; expected one",
            where=str(script),
            next_step="write one statement: STORE ... INTO 'folder';",
        )
    into, mark = found[0][0], found[0][1] or "\t"
    if Path(into).is_absolute() or ".." in Path(into).parts:
        raise FlowError(
            f"stores its result outside the folder of the script: {into}",
            where=str(script),
            next_step="name a folder next to the script",
        )
    with tempfile.TemporaryDirectory() as folder:
        for one in script.resolve().parent.iterdir():
            if one.name != Path(into).parts[0]:
                (Path(folder) / one.name).symlink_to(one)
        _pig(script, Path(folder), *options, "-f", script.name)
        parts = sorted((Path(folder) / into).glob("part-*"))
        lines = [line for part in parts for line in part.read_text(errors="replace").splitlines()]
        return [tuple(line.split("\t" if mark == "\\t" else mark)) for line in lines]


def _plan(script: Path, *options: str) -> Step:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "flow.pig"
        copy.write_text(text_of(script) + "\n")
        said = _pig(script, script.resolve().parent, *options, "-e", f"explain -script {copy};")
    return parse_plan(said)


def _pig(script: Path, cwd: Path, *options: str) -> str:
    """Run Pig and return its output; raise `FlowError` with its error message if it fails."""
    with tempfile.TemporaryDirectory() as logs:
        command = ["java", *OPTIONS, "-cp", f"{jars()}/*", "org.apache.pig.Main", "-x", "local"]
        command += ["-logfile", f"{logs}/pig.log", *options]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIME_S,
                check=False,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise FlowError(
                f"Pig did not finish within {TIME_S} s",
                where=str(script),
                next_step="try the script with `pig -x local`",
            ) from None
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()[-1:]
        said = errors[0].partition(" - ")[2] or errors[0] if errors else "it explains nothing"
        raise FlowError(
            said, where=str(script), next_step="end the script with STORE or DUMP, and try it with `pig -x local`"
        )
    return done.stdout


def parse_plan(text: str) -> Step:
    """Parse the logical plan from EXPLAIN's output; constants come from the physical plan."""
    logical = text.partition("New Logical Plan")[2].partition("Physical Plan")[0]
    physical = text.partition("Physical Plan")[2].partition("Map Reduce Plan")[0]
    constants = iter([found.group(1) for line in physical.splitlines() if (found := _CONSTANT.search(line))])
    root: _Node | None = None
    path: list[_Node] = []
    inner = -1
    for line in logical.splitlines():
        column = len(line) - len(line.lstrip("|- "))
        found = _OPERATOR.match(line[column:])
        if found and found.group(2) not in _INNER:
            node = _Node(column, found.group(2), found.group(1) or "")
            while path and path[-1].column >= column:
                path.pop()
            if path:
                path[-1].below.append(node)
            root = root or node
            path.append(node)
            inner = -1
        elif path and (part := _INSIDE.match(line[column:])):
            inner = inner if inner >= 0 else column
            path[-1].inside.append((column, part.group(2), (part.group(1) or "").rpartition("::")[2]))
    if root is None:
        raise FlowError("Pig's plan cannot be read", next_step="report this error, with the version of Pig")
    return _step(root, constants)


def _step(node: _Node, constants: object) -> Step:
    kind = _KINDS.get(node.name, Kind.OTHER)
    parts = _conditions(node, constants) if kind == Kind.FILTER else ()
    _skip(node, constants, kind)
    inputs = tuple(_step(one, constants) for one in node.below)
    if kind == Kind.GROUP and len(inputs) > 1:
        kind = Kind.JOIN
    names = [alias for _, word, alias in node.inside if word == "Project" and alias]
    text = {
        Kind.SCAN: node.alias,
        Kind.FILTER: " and ".join(parts),
        Kind.JOIN: f"on {' = '.join(names)}",
        Kind.GROUP: f"by {', '.join(names)}",
        Kind.SORT: f"by {', '.join(names)}",
    }.get(kind, node.alias or node.name.lower())
    return Step(kind, text, parts, inputs)


def _skip(node: _Node, constants: object, kind: str) -> None:
    """Skip the constants of steps that are not filters."""
    if kind != Kind.FILTER:
        for _, word, _ in node.inside:
            if word == "Constant":
                next(constants, None)  # type: ignore[call-overload]


def _conditions(node: _Node, constants: object) -> tuple[str, ...]:
    """Return the comparisons in a filter's expression tree; any other expression as its operator and column names."""
    parts: list[str] = []
    inside: Sequence[tuple[int, str, str]] = node.inside
    for at, (column, word, _) in enumerate(inside):
        if word not in _SIGNS:
            continue
        ends = []
        for deeper, kind, alias in inside[at + 1 :]:
            if deeper <= column:
                break
            if kind == "Project":
                ends.append(alias)
            elif kind == "Constant":
                ends.append(str(next(constants, "?")))  # type: ignore[call-overload]
        parts.append(f" {_SIGNS[word]} ".join(ends[:2]) if len(ends) >= 2 else f"{word.lower()} {' '.join(ends)}")
    return tuple(parts) or tuple(sorted({f"{word.lower()} {alias}".strip() for _, word, alias in inside}))
