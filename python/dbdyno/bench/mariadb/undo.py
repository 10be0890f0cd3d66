"""Changes to undo on a MariaDB server, as data, and the code that undoes them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbdyno.bench.silent_servers import UNANSWERED, is_unanswered, note_unanswered

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.address import Parameters


@dataclass(frozen=True, slots=True)
class MariaUndo:
    """Undo that runs statements on a server, each separately; they must be safe to run twice.

    Attributes:
        label: What the undo is for, for messages.
        connection: PyMySQL's parameters, including the password: sent over a pipe only and never printed.
        statements: The statements, in order.
        patience_s: How long the undo tries to connect, in seconds.
        lasting: True if the guardian retries for hours.
        record: File that records the settings to restore; removed when the undo has succeeded.
    """

    label: str
    connection: Parameters = field(repr=False)
    statements: tuple[str, ...]
    patience_s: float = 30.0
    lasting: bool = False
    record: str = ""

    def execute(self) -> list[str]:
        """Run the statements and return problems as sentences, an empty list on success.

        A server that did not answer a login a moment ago is not tried again here: the guardian does so.
        """
        if is_unanswered(self.connection):
            return [f"{self.label}: {UNANSWERED}"]
        from dbdyno.bench.engine.unrestored_settings import delete_record
        from dbdyno.bench.mariadb.address import driver, error_text
        from dbdyno.bench.mariadb.session import rows

        problems = []
        try:
            with contextlib.closing(self._connect()) as connection:
                for sql in self.statements:
                    try:
                        rows(connection, sql)
                    except driver().Error as error:
                        problems.append(f"{self.label}: {error_text(error)}")
        except (driver().Error, OSError) as error:
            problems.append(f"{self.label}: {error_text(error)}")
        if not problems:
            delete_record(self.record)
        return problems

    def _connect(self) -> Any:
        from dbdyno.bench.mariadb.address import driver
        from dbdyno.bench.mariadb.session import open_session

        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                return open_session(self.connection, answer_s=None)
            except driver().OperationalError as error:
                if "timed out" in str(error):
                    note_unanswered(self.connection)
                    raise
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.25)
