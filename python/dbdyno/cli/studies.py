"""`dbdyno studies`: the built-in studies."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output, format_options, show_rows


@click.command("studies")
@click.argument("name", required=False)
@format_options
def command(name: str | None, output: Output) -> None:
    """List the built-in studies, or show one: its factors, workload, targets and source."""
    from dbdyno.study.library import STUDIES, find_study

    if name is None:
        rows = [{"study": s.name, "question": s.question} for s in STUDIES.values()]
        show_rows(rows, output, title="studies")
        return
    study = find_study(name)
    if output.form in ("json", "jsonl"):
        show_rows([study.as_dict()], output)
        return
    click.echo(study.as_text(), nl=False)
