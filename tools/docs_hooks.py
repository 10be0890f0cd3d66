r"""What `make docs` does beside mkdocs: a page of all commands, and links that lead out of docs/.

- `reference/cli.md` is made of the commands themselves, as click knows them, whenever the site is built; it is no file
  of the repository.
- `\|` in the code of a table is a plain `|`, as a code host shows it.
- A link to a file outside docs/, such as `[predicate.toml](../examples/predicate.toml)`, leads somewhere where the
  repository is read, and nowhere on the site: there its text alone is left.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ASSETS = Path(__file__).with_name("docs")
CLI_PAGE = "reference/cli.md"
HEAD = """\
# Commands and options

Every command with its options, made from the program itself; `--help` after a command says the same, and has a short
form, `-h`. [Commands](commands.md) is the page to find one by what it does.
"""
SPECIAL = re.compile(r"[\\*_{}\[\]<>&|~^#]")
"""What Markdown or HTML would take for more than a sign."""
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
ROW = re.compile(r"^ *\|.*$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s#:]+)(?:#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the page of commands, and what the theme needs besides (tools/docs), among the files of the site."""
    files.append(File.generated(config, CLI_PAGE, content=commands_page()))
    for path in sorted(ASSETS.iterdir()):
        files.append(File.generated(config, f"assets/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put a page of docs/ as the site needs it; blocks of code stay as they are."""
    docs = Path(config.docs_dir).resolve()
    folder = (docs / page.file.src_uri).parent

    def told(link: re.Match[str]) -> str:
        inside = (folder / link[2]).resolve().is_relative_to(docs)
        return link[0] if inside else link[1]

    def prose(text: str) -> str:
        text = ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)
        return LINK.sub(told, text)

    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else prose(part) for part in parts)


def commands_page() -> str:
    """Return the text of the page: every command, in the order of `--help`, after the one that it belongs to."""
    from dbdyno.cli.main import cli

    return "\n".join([HEAD, *_entry(cli, click.Context(cli, info_name="dbdyno"))])


def _entry(command: click.Command, context: click.Context) -> Iterator[str]:
    """Return the lines of a command and of all below it."""
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"{'###' if context.parent and context.parent.parent else '##'} {context.command_path}\n"
    yield f"```text\n{usage}\n```\n"
    yield from _help(command.help or "")
    yield from _options(command, context)
    if command.epilog:
        yield f"{_plain(command.epilog)}\n"
    if isinstance(command, click.Group):
        for below in _below(command, context):
            yield from _entry(below.command, below)


def _below(group: click.Group, context: click.Context) -> Iterator[click.Context]:
    """Return the commands of a group, first the one that takes what is no command's name, if there is one."""
    try:
        name, command, _ = group.resolve_command(context, ["SOURCE"])
    except click.UsageError:
        command = None
    if command:
        yield click.Context(command, info_name=name, parent=context)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command and not command.hidden:
            yield click.Context(command, info_name=name, parent=context)


def _help(text: str) -> Iterator[str]:
    """Return the paragraphs of a help text; what click would not wrap, and what is a command line, is code."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text).partition("\f")[0].strip()):
        if paragraph.startswith(("\b", "dbdyno ")):
            lines = paragraph.removeprefix("\b").strip("\n")
            yield f"```text\n{lines}\n```\n"
        elif paragraph:
            yield f"{_plain(paragraph)}\n"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Return the table of a command's options, without the one that shows its help."""
    records = [option.get_help_record(context) for option in command.params if isinstance(option, click.Option)]
    rows = [record for record in records if record]
    if rows:
        yield "| option | what |\n|---|---|"
        for names, meaning in rows:
            yield f"| `{names}` | {_plain(meaning)} |"
        yield ""


def _plain(text: str) -> str:
    """Text of a help as Markdown: words between backticks are code, any other sign is itself."""

    def signs(part: str) -> str:
        return part if part.startswith("`") else SPECIAL.sub(lambda sign: f"&#{ord(sign[0])};", part)

    return "".join(map(signs, re.split(r"(`[^`]+`)", re.sub(r"\s+", " ", text).strip())))
