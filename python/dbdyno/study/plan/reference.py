"""Reference of a plan's keys (docs/reference/plan.md), made from the table of keys and the defaults.

Pure: `plan_reference()` returns the page as text, and a test compares docs/reference/plan.md with it. To write the page
again:

    python -m dbdyno.study.plan.reference > docs/reference/plan.md
"""

from __future__ import annotations

import textwrap
from dataclasses import MISSING, fields
from typing import Any

from dbdyno.study.plan import keys, network
from dbdyno.study.plan.factors import ARMS_MOST
from dbdyno.study.plan.key import Key
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Server, Watch, Workload

WIDTH = 118
LONGEST_EXAMPLE = 70

_HEAD = """\
# The keys of a plan

A plan is a TOML file. `dbdyno plan new` writes a commented one that runs as it is,
`dbdyno plan check plan.toml` says what a plan would do, `dbdyno run plan.toml` does it. This page
is made from the table that the reader of plans checks against (`python/dbdyno/study/plan/keys.py`),
and a test holds it against that table.

The least that a plan needs is a title, something to run, and an arm:

```toml
title = "work_mem"

[workload]
scripts = [{text = "select count(*) from generate_series(1, 10000);"}]

[[arm]]
name = "4MB"
settings = {work_mem = "4MB"}

[[arm]]
name = "64MB"
settings = {work_mem = "64MB"}
```

The first arm is the base that the others are compared with. An unknown key, a wrong type or a
value out of its limits is an error that names the file and the line; nothing is run then. Every
number and duration has limits, which stand behind it below; a plan has at most {arms} arms, and at
most {slices} slices in a block.

- A duration is a string of a number and a unit, `ns`, `us`, `ms`, `s`, `min` or `h`: `"50ms"`,
  `"1.5s"`, `"2min"`.
- A setting may be a string, a number or a truth value:
  `{work_mem = "64MB", jit = false, commit_delay = 200}`.
- `[[factor]]` stands for arms: what differs, with a list of its levels. `sessions`, `rate_per_s`, `protocol`,
  `statement_mode`, `client` and `fetch_size` are those of an arm, `variables.NAME` is `:NAME` in the scripts,
  `parameters.NAME` one of a typed workload, `delay` and `network.rate` are the network's, and any other name is a
  setting: `work_mem = ["4MB", "64MB"]`. With `name` and `levels = [{name = "small", ...}, ...]` a level may be anything
  that an arm may have. Several factors make every
  combination of their levels, at most {factors} arms; or see `design`. What the levels say:
  [how to find the knee](../how-to/find-the-knee.md).
- File names of scripts are relative to the plan's folder. The scripts' language:
  [scripts.md](scripts.md).
- How the arms take turns follows from how they differ: see
  [how to test a setting](../how-to/test-a-setting.md).
"""

_MEANING = {
    **keys.TABLE_MEANING,
    "arm": "one variant; write [[arm]] once for each. What is left out is as in the tables above",
    "server": "what server = {...} of an arm may say; arms that say the same share one",
    "network": "what network = {...} of [load] and of an arm may say: what if the application stood further away?",
    "script": "an element of scripts = [...]; a plain string is short for {file = ...}",
}

_PLACES: tuple[tuple[str, str, tuple[Key, ...], type], ...] = (
    ("", "At the top", keys.TOP, Plan),
    ("target", "`[target]`", keys.TARGET, Plan),
    ("workload", "`[workload]`", keys.WORKLOAD, Workload),
    ("load", "`[load]`", keys.LOAD, Plan),
    ("schedule", "`[schedule]`", keys.SCHEDULE, Schedule),
    ("watch", "`[watch]`", keys.WATCH, Watch),
    ("verdict", "`[verdict]`", keys.VERDICT, Judge),
    ("arm", "`[[arm]]`", keys.ARM, Arm),
    ("server", "A server", keys.SERVER, Server),
    ("network", "A network", network.KEYS, Arm),
    ("script", "A script", keys.SCRIPT, Script),
)
"""Table, heading, its keys, and the class whose field of that name has the default."""

_FIELD = {"metric": "headline"}
_UNITS_NS = (("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 10**3))


def plan_reference() -> str:
    """Return the page in Markdown."""
    parts = [_HEAD.replace("{arms}", str(keys.ARMS_MOST)).replace("{slices}", f"{keys.SLICES_MOST:,}")]
    parts[0] = parts[0].replace("{factors}", str(ARMS_MOST))
    for table, heading, own, holder in _PLACES:
        meaning = f": {_MEANING[table]}" if table in _MEANING else ""
        parts.append("\n".join([*_wrapped(f"## {heading}{meaning}"), ""]))
        parts.append("\n".join(_entry(key, holder) for key in own) + "\n")
    return "\n".join(parts)


def _entry(key: Key, holder: type) -> str:
    meaning = " ".join((key.meaning or "its name in evidence and reports").split())
    facts = [keys.TYPE_WORDS[key.type], *_limits(key), *_default(key, holder)]
    text = f"- `{key.name}`: {meaning}. ({'; '.join(facts)})"
    lines = textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if key.example and "\n" not in key.example and len(key.example) <= LONGEST_EXAMPLE:
        lines += [f"  Example: `{key.name} = {key.example}`"]
    return "\n".join(lines)


def _limits(key: Key) -> list[str]:
    if key.choices:
        return ["one of " + ", ".join(f"`{choice}`" for choice in key.choices)]
    return [limits] if (limits := keys.limits(key)) else []


def _default(key: Key, holder: type) -> list[str]:
    """Return `required`, or the default if it is a plain value; the key's meaning explains None."""
    if key.required:
        return ["required"]
    by_name = {field.name: field for field in fields(holder)}
    name = _FIELD.get(key.name, key.name)
    field = by_name.get(name) or by_name.get(f"{name}_ns")
    if field is None or field.default in (MISSING, None, ""):
        return []
    return [f"default {_shown(field.default, duration=key.type == 'duration')}"]


def _shown(value: Any, *, duration: bool) -> str:
    if duration:
        unit, size = next((unit, size) for unit, size in _UNITS_NS if value % size == 0)
        return f'`"{value // size}{unit}"`'
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`"


def _wrapped(heading: str) -> list[str]:
    """Return a heading in one line; if it is too long, its explanation follows as text."""
    if len(heading) <= WIDTH:
        return [heading]
    head, _, rest = heading.partition(": ")
    return [head, "", *textwrap.wrap(rest[:1].upper() + rest[1:] + ".", WIDTH)]


if __name__ == "__main__":
    import sys

    sys.stdout.write(plan_reference())
