"""A plan that tries a change on one statement, as text that a user completes.

The evidence does not contain parameter values, so each parameter of the statement becomes a variable of the script,
with a range that the user replaces. The arms vary the setting that a recommendation on this statement proposes, or else
a setting chosen as an example.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.advise.snapshot_advice import about_statement, advice_on
from dbdyno.base.errors import AdviceError, Error
from dbdyno.base.escaping import escape_line
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.statement_texts import statement_texts
from dbdyno.snapshot.store.folder import Snapshot, Store

_PARAMETERS = {"postgres": re.compile(r"\$(\d{1,4})\b"), "mariadb": re.compile(r"(\?)")}
_EXAMPLES = {"postgres": ("work_mem", "64MB"), "mariadb": ("sort_buffer_size", "8M")}
TITLE_MOST = 60


@dataclass(frozen=True, slots=True)
class SeenStatement:
    """A statement to be tried: engine, identifier, text, and where it was found."""

    engine: str
    name: str
    text: str
    seen: str


def plan_of_seen(store: Store, ends: tuple[Snapshot, Snapshot], name: str) -> str:
    """Return the plan for a statement that was seen between two snapshots.

    Raises:
        AdviceError: Its text is not known.
    """
    first, last = ends
    with Interval(store, first, last) as interval:
        text = statement_texts(interval).get(name)
    if not text:
        raise AdviceError(
            f"the text of statement {name!r:.60} is not known",
            where=f"snapshots {first.number} to {last.number}",
            next_step="choose a longer interval, or another statement",
        )
    try:
        model = advice_on(store, f"{first.number}..{last.number}", last.target)
        findings = about_statement(model, name)["findings"]
    except Error:  # no rules for this engine
        findings = []
    return statement_plan(SeenStatement(last.engine, name, text, last.target), findings)


def statement_plan(statement: SeenStatement, findings: Iterable[Mapping[str, Any]] = ()) -> str:
    """Return a plan.toml that runs the statement unchanged and with one change."""
    script, count = _script(statement)
    setting, found, proposed = _change(statement.engine, findings)
    begins = escape_line(" ".join(statement.text.split()), TITLE_MOST)
    comments = [
        f"Statement {escape_line(statement.name, 80)}, seen on {escape_line(statement.seen, 200)}.",
        *(
            [
                f"Evidence contains no parameter values: give your values for the {count} variables, of "
                f"the types of their columns."
            ]
            if count
            else []
        ),
        "Run it on a copy of the server: dbdyno run plan.toml --target DSN",
        "To test a change that is not a setting, such as an index: prepare two databases, and give each arm its dsn.",
    ]
    head = "".join(f"# {one}\n" for one in comments)
    return f"""{head}
title = {_basic(f"{setting} for {begins}")}

[workload]
scripts = [{{name = {_basic(f"statement {statement.name}")}, text = {_multiline(script)}}}]

[load]
sessions = 4

[schedule]
blocks = 20

[[arm]]
name = "as it is"
{f"settings = {{{setting} = {_basic(found)}}}" if found else "# the server's own settings"}

[[arm]]
name = "changed"
settings = {{{setting} = {_basic(proposed)}}}  # {"as advised" if found else "an example: what you want to try"}
"""


def _script(statement: SeenStatement) -> tuple[str, int]:
    """Return the statement as a script, and the number of its variables."""
    names: dict[str, str] = {}

    def variable(match: re.Match[str]) -> str:
        key = match[1] if match[1] != "?" else f"?{len(names)}"
        return ":" + names.setdefault(key, f"v{len(names) + 1}")

    pattern = _PARAMETERS.get(statement.engine)
    body = pattern.sub(variable, statement.text) if pattern else statement.text
    sets = "".join(f"\\set {name} random(1, 1000)\n" for name in names.values())
    return f"{sets}{body.strip().rstrip(';')};\n", len(names)


def _change(engine: str, findings: Iterable[Mapping[str, Any]]) -> tuple[str, str, str]:
    """Return a setting, its current value ("" if unknown) and the value to try: from a finding, or else an example."""
    for one in findings:
        test = one.get("test")
        if test and test["found"] and test["found"] != test["proposed"]:
            return str(test["setting"]), str(test["found"]), str(test["proposed"])
    setting, proposed = _EXAMPLES.get(engine, _EXAMPLES["postgres"])
    return setting, "", proposed


def _basic(text: str) -> str:
    """Return a text as a TOML basic string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _multiline(text: str) -> str:
    """Return a script as a TOML multi-line literal string, or a basic one if it has characters that need escapes."""
    plain = all(character >= " " or character in "\n\t" for character in text) and "\x7f" not in text
    return f"'''\n{text}'''" if plain and "'''" not in text else _basic(text)
