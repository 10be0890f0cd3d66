"""What must be put back on a MariaDB server, as data, and the code that puts it back."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.address import Parameters


@dataclass(frozen=True, slots=True)
class MariaUndo:
    """Statements to run on a server, each on its own; they stand being run twice.

    `connection` are PyMySQL's parameters, password included: it travels over a pipe and is never printed. `lasting`:
    the guardian goes on trying for hours. `record`: the file that says what is owed; removed when it is done.
    """

    label: str
    connection: Parameters = field(repr=False)
    statements: tuple[str, ...]
    patience_s: float = 30.0
    lasting: bool = False
    record: str = ""

    def carry_out(self) -> list[str]:
        """Run the statements; returns what went wrong, nothing if all is well."""
        from dbdyno.bench.engine.unrestored import forget
        from dbdyno.bench.mariadb.address import driver, said
        from dbdyno.bench.mariadb.session import rows

        problems = []
        try:
            with contextlib.closing(self._connect()) as connection:
                for sql in self.statements:
                    try:
                        rows(connection, sql)
                    except driver().Error as error:
                        problems.append(f"{self.label}: {said(error)}")
        except (driver().Error, OSError) as error:
            problems.append(f"{self.label}: {said(error)}")
        if not problems:
            forget(self.record)
        return problems

    def _connect(self) -> Any:
        from dbdyno.bench.mariadb.address import driver
        from dbdyno.bench.mariadb.session import open_session

        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                return open_session(self.connection, answer_s=None)
            except driver().OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.25)
