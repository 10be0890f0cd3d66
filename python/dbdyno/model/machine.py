"""Lookup of the machine that a target names: a built-in machine or a TOML file.

    machine_of("model:exadata-x2")      a built-in machine (`dbdyno model list`)
    machine_of("model:./mine.toml")     a file

The core reads and checks the text; this module resolves names and suggests similar ones. Nothing is run.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.base.core_types import MachineDatabase, MachineParameter, MachinePart
from dbdyno.base.errors import ModelError, unknown_name
from dbdyno.base.files import user_file_text

PREFIX = "model:"


@dataclass(frozen=True)
class Machine:
    """A machine: its TOML text and what the core found in it.

    `databases` are the databases besides the one that is studied.
    """

    target: str
    toml: str
    title: str
    databases: list[MachineDatabase]
    parts: list[MachinePart]
    parameters: list[MachineParameter]

    def path(self, name: str, also: list[str] | None = None) -> str:
        """Return the full path of the parameter that `name` identifies.

        Args:
            name: a full path, or the end of a path if only one parameter has it. If several instances have a parameter
                of this name, that of `[database]` is taken.
            also: other names that the user may have meant, for suggestions.

        Raises:
            ModelError: no parameter has this name, or several; the error suggests similar names and how to list them
                all.
        """
        paths = [str(row["path"]) for row in self.parameters]
        if name in paths:
            return name
        ends = self._ends(name)
        if len(ends) == 1:
            return ends[0]
        listing = f"list all parameters with `dbdyno model show {self.name}`"
        if ends:
            raise ModelError(
                f"{name!r} matches {len(ends)} parameters of this machine",
                where=f"--set {name}",
                next_step=f"name one of them: {', '.join(ends)}; {listing}",
            )
        near = self._near(name, paths, also or [])
        raise ModelError(
            f"{name!r} is neither a factor of the study nor a parameter of {self.name}",
            where=f"--set {name}",
            next_step=(f"did you mean {' or '.join(near)}? " if near else "") + listing,
        )

    def values(self, paths: list[str]) -> dict[str, str]:
        """Return the machine's own values of these parameters as text, `?` for a missing one."""
        known = {row["path"]: row["value"] for row in self.parameters}
        return {path: _text(known.get(self._whole(path))) for path in paths}

    def number(self, path: str) -> float:
        """Return the machine's own value of a numeric parameter, or NaN if there is none."""
        value = next((row["value"] for row in self.parameters if row["path"] == path), None)
        return float(value) if isinstance(value, int | float) else math.nan

    @property
    def name(self) -> str:
        """Return the target without the prefix `model:`."""
        return self.target.removeprefix(PREFIX)

    def _whole(self, name: str) -> str:
        ends = self._ends(name)
        return ends[0] if len(ends) == 1 else name

    def _ends(self, name: str) -> list[str]:
        found = [p for row in self.parameters if (p := str(row["path"])).endswith(f".{name}")]
        return [path for path in found if not path.startswith("databases.")] or found

    @staticmethod
    def _near(name: str, paths: list[str], also: list[str]) -> list[str]:
        ends = {path.rpartition(".")[2]: path for path in paths}
        found = difflib.get_close_matches(name.rpartition(".")[2], [*also, *ends], 3)
        found += difflib.get_close_matches(name, paths, 1)
        return list(dict.fromkeys(ends.get(word, word) for word in found))


def machine_of(target: str) -> Machine:
    """Read and check the machine of a target `model:NAME` or `model:FILE.toml`.

    Raises:
        ModelError: the machine or file does not exist, or a key or value in it is not valid.
    """
    from dbdyno import _core

    name = target.removeprefix(PREFIX)
    if name.endswith(".toml") or "/" in name:
        return parse_machine(target, _file(Path(name)), name)
    known = list(_core.model_machines())
    if name not in known:
        raise unknown_name(ModelError, "built-in machine", name, known, where=target, prefix=PREFIX)
    return parse_machine(target, str(_core.model_machine(name)))


def parse_machine(target: str, toml: str, file: str | None = None) -> Machine:
    """Return the machine described by a TOML text.

    Raises:
        ModelError: the text is not valid; the error names the file, the line and what is allowed.
    """
    from dbdyno import _core

    try:
        found = _core.model_check(toml)
    except ModelError as error:
        if file is None:
            raise
        where = f"{file}: {error.where}" if error.where else file
        raise ModelError(error.message, where=where, next_step=error.next_step) from error
    return Machine(target, toml, found["title"], found["databases"], found["parts"], found["parameters"])


def _file(path: Path) -> str:
    step = (
        "write a machine to start from with `dbdyno model new`, or list the built-in machines with `dbdyno model list`"
    )
    return user_file_text(path, ModelError, next_step=step)


def _text(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
