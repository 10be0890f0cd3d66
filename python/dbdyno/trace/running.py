"""Evidence that the core records while it runs: sessions of a server, or messages of its clients."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dbdyno.base.json_types import JsonObject


@dataclass
class Running:
    """Something that the core runs, such as a proxy or a recording; `report` is its latest report."""

    core: Any
    report: JsonObject = field(default_factory=dict)

    def read_report(self) -> JsonObject:
        """Return the current report."""
        found = json.loads(self.core.progress())
        if found:
            self.report = found
        return self.report

    def is_over(self) -> bool:
        """Return True if the core's work ended by itself: its time is over, it exceeded its limit, or it failed."""
        return bool(self.core.is_over())

    @contextlib.contextmanager
    def until_end(self) -> Iterator[None]:
        """End the core's work when the `with` block ends, and store its last report."""
        try:
            yield
        finally:
            self.report = json.loads(self.core.finish())
