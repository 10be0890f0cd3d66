"""The pages of docs/gallery, run as they are written: `python tools/gallery.py [NAME ...]` makes their figures again.

A page is its own script. Its blocks, in order:

    ```toml title="plan.toml"    a file beside the commands
    ```sql                       statements for an embedded PostgreSQL, which is then `postgresql://me@db1/shop`
    ```sh                        the commands
    ```text                      lines that they print

Its picture is `NAME.SUFFIX`, which a command writes, or `NAME.FIGURE.SUFFIX`, which `--figures figures` writes as
FIGURE. Commands run in a temporary folder, where `examples/` is that of the repository.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "gallery"
ADDRESS = "postgresql://me@db1/shop"
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.-]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]+\]\(([\w.-]+\.(?:svg|png))\)")
SMALL = {
    "run": ("--quick", "--blocks", "2"),
    "flash-log": ("--set", "sessions=4"),
    "flash-primer": ("--set", "spare=0.28"),
    "queue-depth": ("--set", "jobs=1,2,4"),
    "redo-device": ("--set", "sessions=1"),
}
"""Options by which a test makes a command or a study small; the last of an option counts."""

Run = Callable[[Sequence[str], Path], tuple[int, str]]
"""Runs `dbdyno` with these words in a folder; returns the exit code and all output."""


@dataclass(frozen=True)
class Page:
    """One worked question: its picture and its blocks as (language, title, text)."""

    path: Path
    picture: str
    blocks: tuple[tuple[str, str, str], ...]

    def texts(self, language: str) -> list[str]:
        """Return the blocks in a language."""
        return [text for kind, _, text in self.blocks if kind == language]

    def commands(self) -> Iterator[list[str]]:
        """Yield the words of each command, `dbdyno` left out."""
        for line in "".join(self.texts("sh")).replace("\\\n", " ").splitlines():
            yield shlex.split(line)

    def printed(self) -> list[str]:
        """Return the lines that the page says the commands print."""
        return [line.strip() for line in "".join(self.texts("text")).splitlines() if line.strip()]


def pages() -> dict[str, Page]:
    """Return the pages by name."""
    found = {}
    for path in sorted(PAGES.glob("*.md")):
        text = path.read_text()
        if path.stem != "README" and (picture := PICTURE.search(text)):
            found[path.stem] = Page(path, picture[1], tuple(BLOCK.findall(text)))
    return found


def carry_out(page: Page, folder: Path, run: Run, *, small: bool = False) -> tuple[Path, str]:
    """Run a page in an empty folder; return its picture there and all output.

    Raises:
        RuntimeError: A command failed.
    """
    (folder / "examples").symlink_to(ROOT / "examples")
    for language, title, text in page.blocks:
        if language == "toml":
            (folder / title).write_text(text)
    output = ""
    with _server(page.texts("sql")) as address:
        for program, *words in page.commands():
            given = [address if word == ADDRESS else word for word in words]
            if program != "dbdyno":
                subprocess.run([program, *given], cwd=folder, check=True)
                continue
            if small:
                given += [option for word in words[:2] for option in SMALL.get(word, ())]
            code, said = run(given, folder)
            if code not in (0, 1):
                raise RuntimeError(f"{page.path.name}: {shlex.join(words)} ended with {code}:\n{said}")
            output += said
    *_, figure, suffix = page.picture.split(".")
    direct = folder / page.picture
    return (direct if direct.exists() else folder / "figures" / f"{figure}.{suffix}"), output


@contextlib.contextmanager
def _server(statements: list[str]) -> Iterator[str]:
    """Start a PostgreSQL with these tables, if there are any."""
    if not statements:
        yield ADDRESS
        return
    import psycopg
    from psycopg.conninfo import make_conninfo

    from dbdyno.bench.postgres.embedded import EmbeddedPostgres

    with EmbeddedPostgres() as server:
        address = make_conninfo("", **server.conninfo())
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("".join(statements).encode())
        yield address


def _in_a_process(words: Sequence[str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "dbdyno", *words], cwd=folder, text=True, capture_output=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def main() -> None:
    """Make the pictures of the pages named, or of all."""
    wanted = sys.argv[1:] or list(pages())
    for name in wanted:
        page = pages()[name]
        with tempfile.TemporaryDirectory() as folder:
            picture, output = carry_out(page, Path(folder), _in_a_process)
            shutil.copyfile(picture, PAGES / page.picture)
        sys.stdout.write(f"== {name}: {page.picture}, {(PAGES / page.picture).stat().st_size:,} bytes\n{output}\n")


if __name__ == "__main__":
    main()
