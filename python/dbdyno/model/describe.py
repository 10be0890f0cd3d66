"""Machines: by name those that come with dbdyno, by path those of the user; and what is in them.

A description is a page for `dbdyno.report`: title, parts (what stands over what) and every
parameter with value, unit, meaning and source, as `dbdyno._core` tells them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dbdyno.errors import ModelError

SCHEMA = 1
# The roots of a machine's drawing: what the instance does its I/O for.
ROLES = ("redo", "data", "temp")
# What tells most about an instance, by the end of its path, with the words around it.
_TELLING = (
    ("database.cores", "{} cores"),
    ("database.redo.block_bytes", "redo blocks of {} bytes"),
    ("database.redo.buffer_kb", "log buffer {} KB"),
    ("database.buffers.buffers", "{} buffers"),
)


def machine_names() -> list[str]:
    """The machines that come with dbdyno."""
    from dbdyno import _core

    return _core.model_machines()


def machine_text(name: str) -> str:
    """The TOML text of a machine: a name, or the path of a file.

    Raises:
        ModelError: there is neither; the next step lists the names.
    """
    from dbdyno import _core

    if name in machine_names():
        return _core.model_machine(name)
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}", where=name,
                             next_step="write one with `dbdyno model new`") from error  # fmt: skip
        except UnicodeDecodeError as error:
            raise ModelError(f"is no text: byte {error.start} is not UTF-8", where=name) from error
    raise ModelError(
        f"no machine {name!r}", next_step=f"name a file, or one of {', '.join(machine_names())}"
    )


def describe(name: str) -> dict[str, Any]:
    """The page about a machine.

    Raises:
        ModelError: there is none, or it is not right; `where` names file, line and key.
    """
    found = checked(machine_text(name), name)
    return {
        "schema": SCHEMA, "kind": "model", "page": "machine", "name": name,
        "title": found["title"], "instance": _instance(found["parameters"]),
        "roots": _roots(found["parameters"]), "parts": found["parts"],
        "parameters": found["parameters"],
    }  # fmt: skip


def checked(text: str, name: str) -> dict[str, Any]:
    """Title, parts and parameters of a machine's text; raises `ModelError` with its `name`."""
    from dbdyno import _core

    try:
        found: dict[str, Any] = json.loads(_core.model_check(text))
    except ModelError as error:
        place = f"{name}, {error.where}" if error.where else name
        raise ModelError(error.message, where=place, next_step=error.next_step) from error
    return found


def _instance(parameters: list[dict[str, Any]]) -> str:
    """The instance in a line: what tells most about it."""
    values = {parameter["path"]: parameter["value"] for parameter in parameters}
    known = [words.format(values[path]) for path, words in _TELLING if values.get(path) is not None]
    return ", ".join(known)


def _roots(parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What lies where: for each role of storage the parts under it."""
    values = {parameter["path"]: parameter["value"] for parameter in parameters}
    roots = []
    for role in ROLES:
        over = values.get(f"storage.{role}")
        if over:
            roots.append({"role": role, "over": [over] if isinstance(over, str) else list(over)})
    return roots


def commented(name: str) -> str:
    """The text of a machine with every parameter that it leaves at its default as a comment.

    Raises:
        ModelError: as `describe`.
    """
    text = machine_text(name)
    left = [p for p in checked(text, name)["parameters"] if not p["given"]]
    lines: list[str] = []
    section, block = "", text.rstrip("\n").split("\n")
    headers = {line.strip()[1:-1] for line in block if _is_header(line)}
    for line in [*block, "[end]"]:
        if _is_header(line):
            trailing = _take_trailing(lines)
            lines += _comments(left, section)
            lines += trailing or [""]
            section = line.strip()[1:-1]
        if line != "[end]":
            lines.append(line)
    others = {_section(p["path"]): None for p in left if p["default"] is not None}
    for other in [name for name in others if name and name not in headers]:
        lines += [f"# [{other}]", *_comments(left, other), ""]
    return "\n".join(lines).strip("\n") + "\n"


def _is_header(line: str) -> bool:
    return line.startswith("[") and line.rstrip().endswith("]")


def _take_trailing(lines: list[str]) -> list[str]:
    """Takes away blank lines and comments at the end: they belong to the header that comes."""
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].startswith("#")):
        at -= 1
    taken = lines[at:]
    del lines[at:]
    return taken


def _section(path: str) -> str:
    return path.rpartition(".")[0]


def _comments(parameters: list[dict[str, Any]], section: str) -> list[str]:
    return [
        f"# {p['path'].rpartition('.')[2]} = {toml_value(p['default'])}"
        f"  # {p['unit'] + '; ' if p['unit'] else ''}{p['meaning']} ({p['source']})"
        for p in parameters
        if _section(p["path"]) == section and p["default"] is not None
    ]


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(toml_value(entry) for entry in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + " }"
    return str(value)
