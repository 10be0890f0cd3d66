"""Time budget of a rehearsal, its use by phase, and the progress that is shown."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Budget:
    """Time budget of a rehearsal, and its progress.

    Attributes:
        seconds: Length of the rehearsal [s].
        show: Function that is called with a line about the progress.
        stop: Returns True if the user asked to stop.
        begun: Start of the rehearsal, by the monotonic clock [s].
        spent: Time by phase [s].
    """

    seconds: float
    show: Callable[[str], None] = lambda _: None
    stop: Callable[[], bool] = lambda: False
    begun: float = field(default_factory=time.monotonic)
    spent: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        """Start the clock."""
        self.begun = time.monotonic()

    @property
    def passed(self) -> float:
        """Return the share of the time budget that has passed; above 1 if the budget is exceeded."""
        return (time.monotonic() - self.begun) / self.seconds

    def is_over(self, share: float = 1.0) -> bool:
        """Return True if this share of the time budget has passed, or the user has asked to stop."""
        return self.stop() or self.passed > share

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Return a context manager that adds the time of its block to a phase."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.spent[name] = self.spent.get(name, 0.0) + time.monotonic() - begun
