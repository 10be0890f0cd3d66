"""Tables that a flow reads: names and files, either CSV with a header or Parquet; each engine reads the same files."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from dbdyno.base.errors import FlowError
from dbdyno.base.files import read_user_file

_NAME = re.compile(r"[A-Za-z_]\w{0,62}")


@dataclass(frozen=True)
class InputTable:
    """Table with its name in the flow and its file."""

    name: str
    path: Path

    @property
    def is_csv(self) -> bool:
        """Return True if the file is a CSV, False if it is Parquet."""
        return self.path.suffix == ".csv"


def input_tables(words: Sequence[str]) -> tuple[InputTable, ...]:
    """Parse words of the form NAME=FILE.

    Raises:
        FlowError: A word has another form, a file is missing or of another type, or a name is used twice.
    """
    found = []
    for word in words:
        name, sign, file = word.partition("=")
        path = Path(file)
        if not sign or not _NAME.fullmatch(name):
            raise FlowError(
                "is not NAME=FILE", where=f"--table {word}", next_step="write for example --table orders=orders.parquet"
            )
        if path.suffix not in (".csv", ".parquet"):
            raise FlowError(
                "is neither .csv nor .parquet",
                where=f"--table {word}",
                next_step="give a file of one of these two types",
            )
        if not path.is_file():
            raise FlowError("there is no such file", where=f"--table {word}", next_step="check the path")
        found.append(InputTable(name, path.resolve()))
    twice = next((one.name for one in found if sum(each.name == one.name for each in found) > 1), None)
    if twice is not None:
        raise FlowError(f"two tables have the name {twice}", where="--table", next_step="rename one of the two")
    return tuple(found)


def text_of(script: Path) -> str:
    """Return the text of a query or script, without surrounding blanks.

    Raises:
        FlowError: The file cannot be read.
    """
    try:
        return read_user_file(script).strip()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is not text"
        raise FlowError(
            f"cannot be read: {said}", where=str(script), next_step="check the path and the permissions of the file"
        ) from None


def plans_of(engine: str) -> ModuleType:
    """Return the module that plans and runs queries on an engine; it imports that engine's library."""
    return importlib.import_module(f"dbdyno.flow.{engine}_plans")
