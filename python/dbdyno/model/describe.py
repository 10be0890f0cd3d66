"""Description of a machine: a page about it, and its text with all defaults as comments.

The page is for `dbdyno.pages`: the title, the parts with their layering, and every parameter with value, unit, meaning
and source, as `dbdyno._core` reports them.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

from dbdyno.base.core_types import MachineDatabase, MachineParameter, MachinePart
from dbdyno.model.machine import machine_of

SCHEMA = 1
# The roots of a machine's drawing: the purposes of the instance's I/O.
ROLES = ("redo", "data", "temp")
# The most informative parameters of an instance: path and wording.
_TELLING = (
    ("database.cores", "{} cores"),
    ("database.redo.block_bytes", "redo blocks of {} bytes"),
    ("database.redo.buffer_kb", "log buffer {} KB"),
    ("database.buffers.buffers", "{} buffers"),
)


class StorageRole(TypedDict):
    """A role of storage (redo, data, temp) and the parts that it uses."""

    role: str
    over: list[str]


class MachinePage(TypedDict):
    """The page about a machine."""

    schema: int
    kind: str
    page: str
    name: str
    title: str
    instance: str
    roots: list[StorageRole]
    databases: list[MachineDatabase]
    parts: list[MachinePart]
    parameters: list[MachineParameter]


class ListedMachine(TypedDict):
    """A built-in machine, as a row of a list."""

    name: str
    title: str
    parts: str


def describe(name: str) -> MachinePage:
    """Return the page about a built-in machine or a machine file.

    Raises:
        ModelError: the machine does not exist or is not valid; `where` names file, line and key.
    """
    machine = machine_of(name)
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "machine",
        "name": machine.name,
        "title": machine.title,
        "instance": _instance(machine.parameters),
        "roots": _roots(machine.parameters),
        "databases": machine.databases,
        "parts": machine.parts,
        "parameters": machine.parameters,
    }


def list_machines() -> list[ListedMachine]:
    """Return the built-in machines, one row each."""
    from dbdyno import _core

    rows: list[ListedMachine] = []
    for name in _core.model_machines():
        machine = machine_of(name)
        parts = ", ".join(f"{part['name']} ({part['kind']})" for part in machine.parts)
        rows.append({"name": name, "title": machine.title, "parts": parts})
    return rows


def _instance(parameters: list[MachineParameter]) -> str:
    """Return the most informative parameters of the instance in one line."""
    values = {parameter["path"]: parameter["value"] for parameter in parameters}
    known = [words.format(values[path]) for path, words in _TELLING if values.get(path) is not None]
    return ", ".join(known)


def _roots(parameters: list[MachineParameter]) -> list[StorageRole]:
    """Return the parts that each role of storage uses."""
    values = {parameter["path"]: parameter["value"] for parameter in parameters}
    roots: list[StorageRole] = []
    for role in ROLES:
        over = values.get(f"storage.{role}")
        if over:
            roots.append({"role": role, "over": [over] if isinstance(over, str) else list(over)})
    return roots


def commented_text(name: str) -> str:
    """Return the text of a machine with every parameter that it leaves at its default added as a comment.

    Raises:
        ModelError: as in `describe`.
    """
    machine = machine_of(name)
    left = [p for p in machine.parameters if not p["given"]]
    lines: list[str] = []
    section, block = "", machine.toml.rstrip("\n").split("\n")
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
    """Remove blank lines and comments from the end and return them: they belong to the header that follows."""
    at = len(lines)
    while at and (not lines[at - 1].strip() or lines[at - 1].startswith("#")):
        at -= 1
    taken = lines[at:]
    del lines[at:]
    return taken


def _section(path: str) -> str:
    return path.rpartition(".")[0]


def _comments(parameters: list[MachineParameter], section: str) -> list[str]:
    lines = []
    for p in parameters:
        if _section(p["path"]) == section and p["default"] is not None:
            meaning = "; ".join(word for word in (p["unit"], p["meaning"]) if word)
            key = p["path"].rpartition(".")[2]
            lines.append(f"# {key} = {toml_value(p['default'])}  # {meaning} ({p['source']})")
    return lines


def toml_value(value: Any) -> str:
    """Return a value in TOML syntax."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(toml_value(entry) for entry in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + " }"
    return str(value)
