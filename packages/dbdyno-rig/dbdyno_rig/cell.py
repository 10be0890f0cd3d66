"""One modelled cell: takes a CellCLI command and returns what CellCLI would print.

LIST reads the cell's last collection and the current state of the model (`lists`); CREATE, DROP and ALTER are in
`changes`.
"""

from __future__ import annotations

from dbdyno.base.errors import ModelError
from dbdyno_rig import answer
from dbdyno_rig.changes import execute
from dbdyno_rig.language import Change, Query, RefusedError, parse_command
from dbdyno_rig.lists import LISTS
from dbdyno_rig.objects import columns, select_objects
from dbdyno_rig.state import CellState


class Cell(CellState):
    """A cell of a rack, identified by its number."""

    def answer(self, text: str, *, xml: bool = False) -> tuple[str, int]:
        """Return what CellCLI prints for a command, and its exit code."""
        began_ms = self.rack.service_began_ns(self.number) // 10**6
        try:
            command = parse_command(text)
            if isinstance(command, Query):
                return self._list(command, xml, began_ms), 0
            return self._apply_change(command), 0
        except RefusedError as refused:
            words = str(refused)
            return answer.xml_error(words, self.name, began_ms) if xml else f"\n{words}\n", 1

    def _list(self, query: Query, xml: bool, began_ms: int) -> str:
        things = select_objects(query, LISTS[query.kind](self))
        shown = columns(query, xml=xml)
        if xml:
            return answer.xml(things, shown, query.kind, self.name, began_ms)
        print_them = answer.detail if query.detail else answer.rows
        return print_them(things, shown)

    def _apply_change(self, change: Change) -> str:
        try:
            # The lock keeps the state that a command checks unchanged until it acts.
            with self.changing:
                return execute(self, change)
        except ModelError as error:
            raise RefusedError(2526, f"Pre-condition failed: {error.message}.") from error
