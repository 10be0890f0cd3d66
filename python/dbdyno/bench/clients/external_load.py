"""Base of loads whose operations run elsewhere; the core's load writes their evidence to the block's part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno import _core
    from dbdyno.base.core_types import LoadSpec


class PartWriter:
    """Methods of `_core.Load` that handle the evidence part of a block."""

    def __init__(self, spec: LoadSpec) -> None:
        from dbdyno import _core

        self.core: _core.Load = _core.Load(spec)

    def begin_block(self, folder: Path, name: str) -> None:
        """Open the block's evidence part."""
        self.core.begin_block(folder, name)

    def end_block(self) -> int:
        """Complete the block's evidence part and return the number of its rows."""
        return self.core.end_block()

    def abandon_block(self) -> None:
        """Discard the evidence part of the open block."""
        self.core.abandon_block()
