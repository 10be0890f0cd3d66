"""Reader of a stack's description, which checks every key, its range, and the combination of keys."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.advise.facts import Facts
from dbdyno.advise.stack.keys import CHOICES, KEYS, REQUIRED, Key
from dbdyno.advise.stack.layers import layers
from dbdyno.advise.stack.parts import Layer, Stack
from dbdyno.base.errors import AdviceError
from dbdyno.base.files import parse_toml, user_file_text

_EXAMPLE = "see the example examples/stacks/san.toml"


def read(path: Path) -> Facts:
    """Return the evidence of a description file.

    Raises:
        AdviceError: the file cannot be read or is not valid; the error names file, line and section.
    """
    text = user_file_text(path, AdviceError, next_step=_EXAMPLE)
    given = parse_toml(text, path, AdviceError, next_step=_EXAMPLE)
    title = given.pop("title", path.name)
    if not isinstance(title, str):
        raise AdviceError("title must be text", where=str(path), next_step='write title = "NAME OF THE STACK"')
    stack = _Reader(str(path), text).stack(given)
    return Facts(title, "stack", {Stack: [stack], Layer: layers(stack)})


class _Reader:
    """Reader of one description file."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.lines = text.splitlines()

    def place(self, section: str, key: str = "") -> str:
        """Return a place such as `stack.toml, line 4, [lun]`; without the line if the key has an unusual form."""
        inside = ""
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*\[\s*([\w-]+)\s*\]", line):
                inside = head[1]
            at = inside == section and (not key or re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line))
            if at or (not inside and not key and re.match(rf"\s*{re.escape(section)}\s*=", line)):
                return f"{self.file}, line {number}" + (f", [{section}]" if section in KEYS else "")
        return f"{self.file}, [{section}]"

    def stack(self, given: Mapping[str, Any]) -> Stack:
        """Return the stack that a parsed file describes, after checking its sections and keys."""
        for section, rows in given.items():
            if section not in KEYS:
                raise AdviceError(
                    f"there is no section {section!r}", where=self.place(section), next_step=_suggestion(section, KEYS)
                )
            if not isinstance(rows, dict):
                raise AdviceError(
                    f"{section!r} is not a section", where=self.place(section), next_step=f"write [{section}]"
                )
        words = {name: self._word(name, given, choices) for name, choices in CHOICES.items()}
        figures: dict[str, float | None] = {}
        for section, keys in KEYS.items():
            figures |= self._section(section, keys, given.get(section))
        for section in REQUIRED:
            if section not in given:
                raise AdviceError(f"there is no section [{section}]", where=self.file, next_step=_EXAMPLE)
        stack = Stack(self.file, figures, words)
        self._check_combination(stack)
        return stack

    def _section(self, section: str, keys: dict[str, Key], given: dict[str, object] | None) -> dict[str, float | None]:
        if given is None:
            return {f"{section}.{name}": key.default for name, key in keys.items()}
        named = [*keys, *(name.partition(".")[2] for name in CHOICES if name.startswith(f"{section}."))]
        for name in given:
            if name not in named:
                raise AdviceError(
                    f"there is no key {name!r} in [{section}]",
                    where=self.place(section, name),
                    next_step=_suggestion(name, named),
                )
        return {f"{section}.{name}": self._figure(section, name, key, given.get(name)) for name, key in keys.items()}

    def _figure(self, section: str, name: str, key: Key, value: Any) -> float | None:
        if value is None:
            if key.required:
                raise AdviceError(
                    f"[{section}] lacks {name}: {key.meaning}", where=self.place(section), next_step=_EXAMPLE
                )
            return key.default
        unit = f" {key.unit}" if key.unit else ""
        kind = "a whole number" if key.whole else "a number"
        is_number = isinstance(value, int if key.whole else (int, float)) and not isinstance(value, bool)
        if not is_number or not key.least <= value <= key.most:
            raise AdviceError(
                f"{name} = {value!r} is not {kind} from {key.least:,.6g}{unit} to {key.most:,.8g}{unit}",
                where=self.place(section, name),
                next_step=f"give a value in this range: {name} is the {key.meaning}",
            )
        return float(value)

    def _word(self, name: str, given: Mapping[str, Any], choices: tuple[str, ...]) -> str:
        section, _, key = name.partition(".")
        value = given.get(section, {}).get(key, choices[0])
        if value not in choices:
            raise AdviceError(
                f"{key} = {value!r} is not one of the allowed values",
                where=self.place(section, key),
                next_step="write one of " + ", ".join(f'"{one}"' for one in choices),
            )
        return str(value)

    def _check_combination(self, stack: Stack) -> None:
        """Check that the values of different keys fit together, and raise an error if not."""
        luns, each = stack.number("lun.count"), stack.figures["stripe.luns"]
        used = (each or 1) * stack.number("demand.file_systems")
        if used > luns:
            raise AdviceError(
                f"the jobs need {used:,.0f} LUNs ({stack.number('demand.file_systems'):,.0f} file systems of"
                f" {each or 1:,.0f} LUNs each), but there are only {luns:,.0f}",
                where=self.place("lun", "count"),
                next_step="set a larger count, or a smaller luns in [stripe]: the number of LUNs of each file system",
            )
        if stack.has("disk.count") and stack.number("disk.count") < stack.number("disk.per_lun"):
            raise AdviceError(
                "a LUN (per_lun) has more disks than there are in total (count)",
                where=self.place("disk", "count"),
                next_step="set count to the number of all disks",
            )


def _suggestion(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
