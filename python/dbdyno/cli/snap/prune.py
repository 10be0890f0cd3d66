"""`dbdyno snap prune`: thin out a store by age."""

from __future__ import annotations

import time
from pathlib import Path

import click

from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.snap.options import name_option, store_option


@click.command("prune")
@click.option(
    "--keep",
    "kept",
    required=True,
    metavar="RULES",
    help="Retention, such as 'minute:2d, hour:60d, day:2y': one snapshot per minute for two days, one per hour up to "
    "60 days, one per day up to two years.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed; change nothing.")
@click.option(
    "--drop-rows",
    is_flag=True,
    help="Also delete snapshots that hold the last values of dropped objects or evicted statements, which are then "
    "lost.",
)
@store_option
@name_option
@format_options
def command(
    kept: str,
    dry_run: bool,
    drop_rows: bool,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Delete old snapshots by the retention rules, and compress the rest.

    Counters are cumulative, so reports over the thinned period still work. The two snapshots around each reset, crash,
    failover and eviction are kept, and so are those with a note or in a baseline. Samples are moved to the next
    snapshot that is kept.

    \b
    dbdyno snap prune --keep 'minute:2d, hour:60d, day:2y' --dry-run
    dbdyno snap prune --keep 'minute:2d, hour:60d, day:2y'
    """
    from dbdyno.cli.snap.options import report_damage
    from dbdyno.snapshot.reading.sums.index import targets
    from dbdyno.snapshot.store.folder import Store
    from dbdyno.snapshot.store.prune import execute_plan, plan_pruning
    from dbdyno.snapshot.store.retention import rules_of

    rules = rules_of(kept)
    holder = Store(store)
    names = [one for one in targets(holder) if target in (None, one)]
    if not names:
        raise click.UsageError(f"no snapshots{f' of {target}' if target else ''} in {store}/")
    rows = []
    for name in names:
        asked = plan_pruning(holder, name, rules, time.time_ns(), rows=not drop_rows)
        if not dry_run:
            execute_plan(holder, asked)
        rows.append(
            {
                "target": name,
                "would go" if dry_run else "gone": len(asked.go),
                "stay": len(asked.stay),
                "of them beside a break": len(asked.breaks),
                "with a name": len(asked.noted),
                "logs' plans": len(asked.plans),
                "numbers": _ranges(asked.go),
            }
        )
    show_rows(rows, output)
    report_damage(holder)


def _ranges(numbers: list[int]) -> str:
    """Return the first eight ranges of a list of numbers as text, such as `1-3, 7`."""
    stretches: list[list[int]] = []
    for number in numbers:
        if stretches and stretches[-1][1] == number - 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in stretches[:8]]
    return ", ".join(shown) + (", ..." if len(stretches) > 8 else "")
