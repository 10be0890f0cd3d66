"""`dbdyno snap list`: the snapshots in a store."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.json_types import TableRow
from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.snap.options import name_option, store_option


@click.command("list")
@store_option
@name_option
@format_options
def command(store: Path, target: str | None, output: Output) -> None:
    """List the snapshots: number, target, when, note."""
    from dbdyno.cli.snap.options import report_damage
    from dbdyno.snapshot.store.folder import Snapshot, Store

    def row(snapshot: Snapshot) -> TableRow:
        unread = [name for name, record in snapshot.views.items() if record.get("problem")]
        return {
            "number": snapshot.number,
            "target": snapshot.target,
            "at": snapshot.at_utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
            "engine": f"{snapshot.engine} {str(snapshot.facts.get('version') or '').split(' ')[0]}",
            "databases": ", ".join(snapshot.facts.get("databases") or []),
            "looks": snapshot.manifest["cost"].get("looks"),
            "note": snapshot.note,
            "not read": ", ".join(unread),
        }

    holder = Store(store)
    rows = [row(one) for one in holder if target in (None, one.target)]
    report_damage(holder)
    if not rows and output.form in (None, "table"):
        inside = sorted(one.parent.parent.name for one in store.glob("*/[0-9]*/manifest.json"))
        names = list(dict.fromkeys(inside))
        known = (
            f"it is a fleet's, with a store for each of {', '.join(names)}: --store {store / names[0]}" if names else ""
        )
        click.echo(f"no snapshots in {store}/; " + (known or "`dbdyno snap take --target DSN` takes one"), err=True)
        return
    show_rows(rows, output)
