"""Draw texts at random to be read aloud: `python tests/manners/sample.py --seed 1 [--kind docstrings] [--count 100]`.

The rule for each: would a native engineer who is new here understand it in one reading? Kinds: docstrings (first
paragraphs), helps (of commands and options), errors (message and next step), pages (of docs, a paragraph each), rust
(first paragraphs of doc comments).
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "dbdyno"
COUNTS = {"docstrings": 100, "helps": 100, "errors": 60, "pages": 60, "rust": 100}
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_RUST = re.compile(r"(?:^[ \t]*//[/!][^\n]*\n)+", re.MULTILINE)

Text = tuple[str, str]
"""Place of a text, and the text."""


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def _first(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())


def docstrings() -> Iterator[Text]:
    """Yield the first paragraph of each docstring."""
    for place, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
                yield f"{place}:{getattr(node, 'lineno', 1)}", f"{getattr(node, 'name', 'module')}: {_first(text)}"


def helps() -> Iterator[Text]:
    """Yield the first paragraph of the help of each command, and that of each option."""
    from dbdyno.cli.main import cli

    def below(command: click.Command, context: click.Context) -> Iterator[Text]:
        yield context.command_path, _first(command.help or "")
        for option in command.params:
            if isinstance(option, click.Option) and option.help and not option.hidden:
                yield f"{context.command_path} {option.opts[-1]}", " ".join(option.help.split())
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if (one := command.get_command(context, name)) is not None:
                    yield from below(one, click.Context(one, info_name=name, parent=context))

    yield from below(cli, click.Context(cli, info_name="dbdyno"))


def errors() -> Iterator[Text]:
    """Yield the message and the next step of each error as they are in the source."""
    for place, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error") and node.args:
                parts = [node.args[0], *(one.value for one in node.keywords if one.arg in {"where", "next_step"})]
                text = " | ".join(ast.unparse(one) for one in parts)
                if "'" in text or '"' in text:
                    yield f"{place}:{node.lineno}", text


def pages() -> Iterator[Text]:
    """Yield the paragraphs of the documentation pages, without code and tables."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for part in re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL).split("\n\n"):
            if len(part.split()) > 8 and not part.lstrip().startswith(("|", "#")):
                yield str(path.relative_to(ROOT)), " ".join(part.split())


def rust() -> Iterator[Text]:
    """Yield the first paragraph of each doc comment of the crates."""
    for path in sorted((ROOT / "crates").rglob("src/**/*.rs")):
        text = path.read_text()
        for found in _RUST.finditer(text):
            lines = "\n".join(re.sub(r"^[ \t]*//[/!] ?", "", line) for line in found[0].splitlines())
            item = text[found.end() :].split("\n", 1)[0].strip()
            line = text.count("\n", 0, found.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}", f"{item[:70]}: {_first(lines)}"


KINDS: dict[str, Callable[[], Iterator[Text]]] = {
    "docstrings": docstrings,
    "helps": helps,
    "errors": errors,
    "pages": pages,
    "rust": rust,
}


def draw(kind: str, seed: int, count: int) -> list[Text]:
    """Return some random texts of a kind; the same seed gives the same texts for an unchanged tree."""
    texts = list(KINDS[kind]())
    return random.Random(f"{seed} {kind}").sample(texts, min(count, len(texts)))


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--count", type=int)
    given = parser.parse_args()
    for kind in given.kind or KINDS:
        sys.stdout.write(f"== {kind}, seed {given.seed}\n")
        for number, (place, text) in enumerate(draw(kind, given.seed, given.count or COUNTS[kind]), 1):
            sys.stdout.write(f"{number}. {place}\n   {text}\n")


if __name__ == "__main__":
    main()
