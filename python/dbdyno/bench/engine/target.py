"""A live server of any engine, as the target of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.host.machine import host_facts

if TYPE_CHECKING:
    from dbdyno.bench.engine.embedded_server import EmbeddedServer


class EngineTarget(ABC):
    """A server; `engine` is the embedded server behind it, or None."""

    engine: EmbeddedServer | None

    @property
    @abstractmethod
    def safe_dsn(self) -> str: ...
    @abstractmethod
    def refuse_live(self) -> None: ...

    @property
    def is_embedded(self) -> bool:
        """Return True if dbdyno started the server: it may then be restarted, and is removed at the end."""
        return self.engine is not None

    def _with_settings(
        self, facts: JsonObject, settings: Iterable[Any], shown_value: Callable[[str, Any], Any]
    ) -> JsonObject:
        """Return a server's facts, with its non-default settings and the facts of its machine."""
        facts["settings"] = [
            {"name": name, "value": shown_value(name, value), "source": source} for name, value, source in settings
        ]
        if self.engine is not None:
            facts.update(self.engine.facts())
        return {**facts, **host_facts()}

    def _ended(self) -> TargetError | None:
        """Return the error for an embedded server that has ended; None if it still runs or dbdyno did not start it."""
        if self.engine is None or self.engine.running:
            return None
        return TargetError(
            f"the embedded server has ended; the last lines of its log:{self.engine.log_tail()}",
            where=self.safe_dsn,
            next_step="check in the kernel's log why it ended (such as lack of memory or disk space)",
        )
