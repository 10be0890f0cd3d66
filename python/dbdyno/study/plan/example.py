"""The commented example plan, made from the table of keys so that it is never out of date."""

from __future__ import annotations

from dbdyno.study.plan import keys
from dbdyno.study.plan.key import Key

_HEAD = """\
# A plan for `dbdyno run`. Lines that begin with "# key =" show what else can be set.
# `dbdyno plan check THIS` says what would happen; `dbdyno run --aa THIS` measures the noise first.
"""
_FACTOR = """\
# Many levels instead of arms: the answer is the knee, and `dbdyno tune` races them.
# [[factor]]
# work_mem = ["1MB", "4MB", "16MB", "64MB"]
# [[factor]]
# sessions = [1, 4, 16]
"""


def example_plan() -> str:
    """Return the text of a plan that runs unchanged on the embedded engine and explains every key."""
    parts = [_HEAD, _keys(keys.TOP)]
    for name, table in keys.TABLES.items():
        parts.append(f"[{name}]  # {keys.TABLE_MEANING[name]}\n{_keys(table)}")
    parts.append("# The arms: the first is the base that the others are compared with.")
    parts.append("[[arm]]\n" + _keys(keys.ARM))
    parts.append('[[arm]]\nname = "64MB"\nsettings = {work_mem = "64MB"}\n')
    parts.append(_FACTOR)
    return "\n".join(parts)


def _keys(table: tuple[Key, ...]) -> str:
    lines = []
    for key in table:
        lines += [f"# {line}" for line in _meaning(key).splitlines()]
        lines.append(f"{key.name} = {key.example}" if key.example else f"# {key.name} =")
    return "\n".join(lines) + "\n"


def _meaning(key: Key) -> str:
    words = key.meaning or key.name
    if key.choices:
        words += f" ({', '.join(key.choices)})"
    elif key.type == "duration":
        words += ' ("50ms", "5s", "2min")'
    return words
