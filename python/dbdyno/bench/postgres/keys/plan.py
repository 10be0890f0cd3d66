"""Keys in a whole capture: each distinct shape of a statement is parsed once, before a replay begins."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.bench.postgres.keys.catalog import Catalog, read_catalog
from dbdyno.bench.postgres.keys.expressions import Use
from dbdyno.bench.postgres.keys.origins import MENTION, Output, Slot
from dbdyno.bench.postgres.keys.parsing import OPAQUE, READ, may_write, parse_statement, statements
from dbdyno.bench.postgres.keys.statement_reader import StatementReader
from dbdyno.evidence.capture_keys import KeyPlan, KeyPosition, KeyPositions

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres

_MARK = re.compile(r"'[pl]\d|\b1\d{6}\b")
"""Pattern of a parameter or a literal in a shape."""


def key_plan(target: Postgres, run: Path, from_ns: int | None = None, to_ns: int | None = None) -> KeyPlan:
    """Return the positions of keys in the statements of a capture or a part of it, using the target's catalog.

    Raises:
        TraceError: the run has no messages, or no transaction in this part.
        EvidenceError: the evidence cannot be read.
    """
    from dbdyno import _core

    shapes = [(str(shape), int(times)) for shape, times in json.loads(_core.captured_shapes(run, from_ns, to_ns))]
    with contextlib.closing(target.connect()) as conn:
        catalog = read_catalog(conn)
    return plan_of(catalog, shapes)


def plan_of(catalog: Catalog, shapes: Iterable[tuple[str, int]]) -> KeyPlan:
    """Return the positions of keys in statements, each given by its shape and how often it was sent."""
    shapes = list(shapes)
    catalog.is_certain = not any("search_path" in shape.lower() for shape, _ in shapes)
    plan = KeyPlan(catalog.names, catalog.kinds, count=len(shapes))
    for shape, times in shapes:
        found = KeySearch(shape)
        found.read(catalog)
        if found.places.is_needed():
            plan.statements.append(found.places)
        if not found.is_read:
            plan.unread.append((shape, times))
        if found.is_mixed:
            plan.mixed.append((shape, times))
    return plan


class KeySearch:
    """Search for the positions of keys in one text of statements.

    `is_read` is False if a statement of the text could not be parsed. `is_mixed` is True if a parameter is a key in one
    place and something else in another, so that it is not mapped.
    """

    def __init__(self, shape: str) -> None:
        self.places = KeyPositions(shape)
        self.is_read = True
        self.is_mixed = False

    def read(self, catalog: Catalog) -> None:
        """Read the statements of the text."""
        shape = self.places.shape
        uses: dict[Slot, set[Use]] = {}
        for word, text in statements(shape):
            if word == "create":
                self.places.returns.clear()
                self.places.writes = True
                return
            tree = parse_statement(text) if word in READ else None
            if tree is None:
                is_unread = word in READ or (word in OPAQUE and _MARK.search(text) is not None)
                self.is_read &= not is_unread
                self.places.writes |= is_unread
                self.places.returns.append([])
                continue
            self.places.writes |= may_write(tree, catalog.writers)
            reading = StatementReader(catalog)
            outputs = reading.query(tree, None) or []
            for output in outputs:
                for slot in output.origin.slots:
                    reading.uses[slot._replace(is_array=False)] |= set()
            uses.update(reading.uses)
            self.places.returns.append([_generated_space(output) for output in outputs])
        self._literals(uses)
        self._parameters(uses)

    def _literals(self, uses: dict[Slot, set[Use]]) -> None:
        for slot, found in uses.items():
            if not slot.is_parameter and len(found) == 1 and (use := next(iter(found))) is not None:
                self.places.literals.append(KeyPosition(slot.number, *use))
        self.places.literals.sort()

    def _parameters(self, uses: dict[Slot, set[Use]]) -> None:
        """Find the parameters whose mentions are all keys of one space; a mention that was not read is not a key."""
        mentions: dict[int, set[Use]] = {}
        for number, mention in MENTION.findall(self.places.shape):
            slot = Slot(True, int(number), int(mention))
            mentions.setdefault(slot.number, set()).update(uses.get(slot, {None}))
        for number, found in sorted(mentions.items()):
            keys = [use for use in found if use is not None]
            if len(keys) == 1 and len(found) == 1:
                self.places.parameters.append(KeyPosition(number, *keys[0]))
            self.is_mixed |= bool(keys) and len(found) > 1


def _generated_space(output: Output) -> int | None:
    """Return the key space of a returned column if an INSERT generates the column's values, otherwise None."""
    made = output.origin.made
    return next(iter(made)) if len(made) == 1 and output.origin.spaces == made else None
