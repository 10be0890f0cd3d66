"""Base of objects that are closed at the end of a `with` block."""

from __future__ import annotations

from typing import Self


class Closing:
    """Context manager that calls `close` on exit."""

    def close(self) -> None:
        """Release what the object holds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
