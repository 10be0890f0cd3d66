"""Reference of a plan's keys (docs/reference/plan.md), made from the table of keys and the defaults.

`plan_reference()` returns the page as text, and a test compares docs/reference/plan.md with it. To write the page
again:

    python -m dbdyno.study.plan.reference > docs/reference/plan.md
"""

from __future__ import annotations

import textwrap
from dataclasses import MISSING, fields
from typing import Any

from dbdyno.study.plan import devices, keys, network
from dbdyno.study.plan.factors import ARMS_MOST
from dbdyno.study.plan.key import Key
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Server, Watch, Workload

WIDTH = 118
LONGEST_EXAMPLE = 70

_HEAD = """\
# The keys of a plan

A plan is a TOML file. `dbdyno plan new` writes a commented example that runs unchanged.
`dbdyno plan check plan.toml` shows what a plan would do, and `dbdyno run plan.toml` does it. This page
is made from the table that the reader of plans uses (`python/dbdyno/study/plan/keys.py`), and a test
compares the two.

A plan needs at least a title, something to run, and an arm:

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

The first arm is the base with which the others are compared. An unknown key, a wrong type or a value
out of its limits is an error that names the file and the line. Then nothing runs. The limits of every
number and duration follow its description. A plan has at most {arms} arms, and at most {slices} slices
in a block.

- A duration is a string of a number and a unit, `ns`, `us`, `ms`, `s`, `min` or `h`: `"50ms"`,
  `"1.5s"`, `"2min"`.
- A setting may be a string, a number or a truth value:
  `{work_mem = "64MB", jit = false, commit_delay = 200}`.
- `[[factor]]` makes arms from the levels of a factor: `work_mem = ["4MB", "64MB"]`. `sessions`, `rate_per_s`,
  `protocol`, `statement_mode`, `client` and `fetch_size` are keys of an arm. `variables.NAME` is `:NAME` in the
  scripts, and `parameters.NAME` a parameter of a typed workload. `delay` and `network.rate` are keys of the network,
  `device`, `device.wal` and `device.iops` of modelled devices. Any other name is a setting. In the long form, `name`
  and `levels = [{name = "small", ...}, ...]`, a level may have any key of an arm. Several factors make
  every combination of their levels, at most {factors} arms; or see `design`.
  [How to find the knee](../how-to/find-the-knee.md) explains the answers.
- File names of scripts are relative to the plan's folder. [scripts.md](scripts.md) describes their language.
- The differences between the arms determine how they alternate: see
  [how to test a setting](../how-to/test-a-setting.md).
"""

_MEANING = {
    **keys.TABLE_MEANING,
    "arm": "one variant; write [[arm]] once for each. Missing keys are as in the tables above",
    "server": "keys of server = {...} of an arm; arms with the same keys share a server",
    "network": "keys of network = {...} of [load] and of an arm: a longer distance between application and server",
    "device": "keys of device = {...} of [target] and of an arm. Any other name is a parameter of all devices that "
    "have it (`iops`) or of one device (`wal.iops`). `direct_io` and `poll` are switches: `direct_io` bypasses the "
    "kernel's cache, and with `poll` the mount polls on a separate processor",
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
    ("device", "A device", devices.KEYS, Arm),
    ("script", "A script", keys.SCRIPT, Script),
)
"""Name of each table, its heading, its keys, and the class whose fields have the defaults of the keys."""

_FIELD = {"metric": "headline"}
_UNITS_NS = (("h", 3600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 10**3))


def plan_reference() -> str:
    """Return the page in Markdown."""
    parts = [_HEAD.replace("{arms}", str(keys.ARMS_MOST)).replace("{slices}", f"{keys.SLICES_MOST:,}")]
    parts[0] = parts[0].replace("{factors}", str(ARMS_MOST))
    for table, heading, own, holder in _PLACES:
        meaning = f": {_MEANING[table]}" if table in _MEANING else ""
        parts.append("\n".join([*_wrap_heading(f"## {heading}{meaning}"), ""]))
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
    """Return `required`, or the default if it is a plain value; if it is None, the key's meaning explains it."""
    if key.required:
        return ["required"]
    by_name = {field.name: field for field in fields(holder)}
    name = _FIELD.get(key.name, key.name)
    field = by_name.get(name) or by_name.get(f"{name}_ns")
    if field is None or field.default in (MISSING, None, ""):
        return []
    return [f"default {_value_text(field.default, duration=key.type == 'duration')}"]


def _value_text(value: Any, *, duration: bool) -> str:
    if duration:
        unit, size = next((unit, size) for unit, size in _UNITS_NS if value % size == 0)
        return f'`"{value // size}{unit}"`'
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`"


def _wrap_heading(heading: str) -> list[str]:
    """Return a heading in one line; if it is too long, its explanation is moved below it as text."""
    if len(heading) <= WIDTH:
        return [heading]
    head, _, rest = heading.partition(": ")
    return [head, "", *textwrap.wrap(rest[:1].upper() + rest[1:] + ".", WIDTH)]


if __name__ == "__main__":
    import sys

    sys.stdout.write(plan_reference())
