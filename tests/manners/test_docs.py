"""Everything that the documents mention exists: commands, links, plans, scripts, keys, checks, columns."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

from dbdyno._core import check_script
from dbdyno.base.decisions import DECISIONS, RULES
from dbdyno.bench.doctor import CHECKS
from dbdyno.bench.engine.prepare import check_scripts
from dbdyno.cli.main import COMMANDS, cli
from dbdyno.model.machine import parse_machine
from dbdyno.snapshot.sending.alerts import read_rules
from dbdyno.snapshot.taking.fleet import read_fleet
from dbdyno.study.plan import keys as plan_keys
from dbdyno.study.plan.file import parse_plan, read_plan
from dbdyno.study.plan.reference import plan_reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*DOCS, *(ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def rel(path: Path) -> str:
    return str(path.relative_to(ROOT))


def page(name: str) -> str:
    (path,) = (ROOT / "docs").rglob(name)
    return path.read_text()


def fenced(text: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(text) if found == language]


def command_lines(path: Path) -> list[list[str]]:
    """Return every `dbdyno ...` command of a page: in blocks of a shell or without a language, and in inline code."""
    text = path.read_text()
    lines: list[str] = []
    for block in (*fenced(text, ""), *fenced(text, "sh")):
        whole = re.sub(r"\n +", " ", block)  # a command that goes on, indented, on the next line
        starts = [line.strip().removeprefix("$ ") for line in whole.splitlines()]
        lines += [line for line in starts if re.match(r"dbdyno [-a-z]", line)]
    lines += re.findall(r"`(dbdyno [^`]+)`", FENCE.sub("", text))
    return [words for line in lines if (words := shlex.split(line, comments=True)[1:])]


def shown() -> list[object]:
    found = {(rel(path), *words) for path in PAGES for words in command_lines(path)}
    return [
        pytest.param(list(words), id=f"{name}: {' '.join(words)}"[:80])
        for name, *words in sorted(found)
        if words[0] != "..."
    ]


def parse(words: list[str]) -> None:
    """Parse a command as the command line would, without running it; a command's name without arguments is accepted."""
    command: click.Command = cli
    context = click.Context(cli, info_name="dbdyno")
    while isinstance(command, click.Group):
        _, rest, _ = command.make_parser(context).parse_args(list(words))
        if not rest:
            return
        name, found, words = command.resolve_command(context, rest)
        assert found is not None, f"no command {name}"
        command, context = found, click.Context(found, info_name=name, parent=context)
    if words:
        command.make_context(str(context.info_name), list(words))


@pytest.mark.parametrize("words", shown())
def test_a_command_that_is_shown_parses(words: list[str]) -> None:
    parse(words)


@pytest.mark.parametrize(
    "line", ["run --no-such-option x.toml", "rnu", "plan chekc x.toml", "sql a b", "run --blocks 1"]
)
def test_a_command_that_is_not_there_would_be_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(shlex.split(line))


def test_enough_commands_were_found() -> None:
    found = {words[0] for path in PAGES for words in command_lines(path)}
    assert found >= set(COMMANDS)


def anchors(path: Path) -> set[str]:
    """Return the anchors that a Markdown renderer gives the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=rel)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", path.read_text())):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        place = path.parent / file if file else path
        assert place.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(place), f"{target}: no such heading"


@pytest.mark.parametrize("path", DOCS, ids=rel)
def test_the_index_names_every_page(path: Path) -> None:
    index = path.with_name("README.md") if path.parent.name == "gallery" else ROOT / "docs" / "README.md"
    assert path.name == "README.md" or f"]({path.relative_to(index.parent)})" in index.read_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=rel)
def test_an_example_is_a_plan_and_is_in_the_index(path: Path) -> None:
    plan = read_plan(path)
    check_scripts(plan)
    assert plan.dsn in (None, "mariadb"), "an example runs as it is, on an embedded server"
    assert f"](../examples/{path.name})" in (ROOT / "docs" / "README.md").read_text()


def plans() -> list[object]:
    found = [(path, block) for path in DOCS for block in fenced(path.read_text(), "toml")]
    return [pytest.param(path, block, id=f"{path.name}-{at}") for at, (path, block) in enumerate(found)]


@pytest.mark.parametrize(("path", "block"), plans())
def test_a_plan_that_is_shown_can_be_read(path: Path, block: str, tmp_path: Path) -> None:
    """A piece of a plan is completed with what every plan needs; a machine, a fleet, rules are read as such."""
    tables = tomllib.loads(block)
    if "rule" in tables or isinstance(tables.get("target"), list):
        shown = tmp_path / "shown.toml"
        shown.write_text(block)
        if "rule" in tables:
            assert read_rules(shown)
        else:
            names = [one["dsn_env"] for one in tables["target"] if "dsn_env" in one]
            assert read_fleet(shown, dict.fromkeys(names, "postgresql://127.0.0.1/x"))
        return
    if "storage" in tables:
        parse_machine("model:shown", block)
        return
    text = block if "title" in tables else f'title = "t"\n{block}'
    if "workload" not in tables:
        text += '[workload]\nscripts = [{text = "select 1;"}]\n'
    if "arm" not in tables:
        text += '[[arm]]\nname = "a"\n'
    check_scripts(parse_plan(text, path))


@pytest.mark.parametrize("name", ["scripts.md", "redo-size.md"])
def test_a_script_that_is_shown_compiles(name: str) -> None:
    blocks = fenced(page(name), "sql")
    assert blocks
    for block in blocks:
        assert check_script(name, block) > 0


def test_the_reference_of_keys_is_current() -> None:
    assert page("plan.md") == plan_reference(), (
        "write it again: python -m dbdyno.study.plan.reference > docs/reference/plan.md"
    )


def test_the_reference_has_every_key() -> None:
    for table in (plan_keys.TOP, plan_keys.ARM, plan_keys.SCRIPT, *plan_keys.TABLES.values()):
        for key in table:
            assert f"- `{key.name}`: " in plan_reference()


def test_the_doctors_page_has_every_check() -> None:
    for name in CHECKS:
        assert f"\n| {name} |" in page("doctor.md")


def test_the_scripts_page_has_every_command_and_function() -> None:
    source = ROOT / "crates" / "dyno-script" / "src"
    commands = re.findall(r'^ {4}\("(\w+)", Meta::', (source / "meta.rs").read_text(), re.MULTILINE)
    functions = re.findall(r'(?:row|seeded)\(\s*"(\w+)"', (source / "function.rs").read_text())
    assert len(commands) > 10
    assert len(functions) > 15
    for name in commands:
        assert f"`\\{name}" in page("scripts.md"), name
    for name in functions:
        assert re.search(rf"`{name}[`(]", page("scripts.md")), name


@pytest.mark.parametrize("table", ["calls", "waits", "metrics"])
def test_the_evidence_page_has_every_column(table: str) -> None:
    source = (ROOT / "crates" / "dyno-evidence" / "src" / f"{table}.rs").read_text()
    columns = re.findall(r'(?:Field::new|text)\("(\w+)"', source)
    assert len(columns) >= 10
    part = page("evidence.md").split(f"\n## {table}\n")[1].split("\n## ")[0]
    for column in columns:
        assert re.search(rf"^\|[^|]*`{column}`", part, re.MULTILINE), column


def test_the_tables_of_decisions_and_gates_are_those_of_the_code():
    text = page("method.md")
    for a in DECISIONS.values():
        assert f"| {a.name} | {a.word} | {a.tone} | {a.exit_of_run} | {a.exit_of_compare} | {a.when} |" in text
    for rule in RULES.values():
        assert f"| {rule.code} | {rule.effect} | {rule.fails} |" in text
