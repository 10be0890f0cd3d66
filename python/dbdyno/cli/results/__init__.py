"""`dbdyno results`: results of runs kept as small files, one file per command."""

from __future__ import annotations

from dbdyno.cli.main import LazyGroup

command = LazyGroup(
    "results",
    package=__name__,
    rows={
        "push": "Keep the results of runs in a folder or a branch.",
        "pull": "Copy results from a folder or branch into a folder.",
        "log": "List the results of a folder or a branch.",
    },
    help="""Results of runs, kept as small files without their evidence.

    PLACE is a folder, which anything may sync, or branch:NAME, a branch of the git repository of the current folder.
    `dbdyno trend PLAN.toml --results PLACE` follows a plan over all results.
    """,
)
