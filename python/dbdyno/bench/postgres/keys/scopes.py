"""Names visible in a part of a statement: its sources, the queries in WITH, and those of the enclosing statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dbdyno.bench.postgres.keys.origins import Origin, Outputs, common_origin


@dataclass
class Scope:
    """One scope: sources by name, WITH queries by name, and the enclosing scope."""

    outer: Scope | None = None
    sources: dict[str, Outputs] = field(default_factory=dict)
    queries: dict[str, Outputs] = field(default_factory=dict)
    merges: bool = False
    """True if a join merges columns, so that the positions of `*` are unknown."""

    def _chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def query(self, name: str) -> tuple[bool, Outputs]:
        """Return whether a WITH query of this name is visible, and the columns that it returns."""
        for scope in self._chain():
            if name in scope.queries:
                return True, scope.queries[name]
        return False, None

    def column(self, source: str | None, name: str) -> Origin | None:
        """Return the origin of a column, or None if it is unknown."""
        for scope in self._chain():
            if source is not None and source not in scope.sources:
                continue
            names = scope.sources if source is None else (source,)
            hits = [out.origin for one in names for out in scope.sources[one] or () if out.name == name]
            if hits:
                return common_origin(hits)
            if source is not None or None in scope.sources.values():
                return None
        return None

    def all_columns(self, source: str | None) -> Outputs:
        """Return the columns of `*` or `source.*`."""
        if source is not None:
            found = next((scope.sources[source] for scope in self._chain() if source in scope.sources), None)
            return None if found is None else list(found)
        if self.merges or None in self.sources.values():
            return None
        return [output for outputs in self.sources.values() for output in outputs or ()]
