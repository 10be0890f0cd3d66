"""`dbdyno ci`: workflows for CI services."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from dbdyno.base.errors import PlanError
from dbdyno.cli.fail_on import NAMES
from dbdyno.cli.output import echo_unchanged, write_text
from dbdyno.cli.parameters import FILE, option_group, option_with_default

SERVICES = {"github": "dbdyno.builds.ci.github", "gitlab": "dbdyno.builds.ci.gitlab"}
"""Module that writes the workflow of each CI service."""


@click.group("ci")
def command() -> None:
    """Write a workflow that runs a change and its base alternately on one machine.

    It builds both, runs PLAN with an arm for each ({build} in the plan is the folder of a build), comments with the
    verdict, keeps the evidence, and fails as --fail-on says.
    """


def _service(name: str, help_text: str) -> click.Command:
    """Return the command that writes the workflow for a CI service."""

    def write(
        plan: str,
        build: str,
        fail_on: tuple[str, ...],
        results: str | None,
        package: str,
        force: bool,
        output: Path | None,
    ) -> None:
        from importlib import import_module

        from dbdyno.builds.ci.request import WorkflowRequest

        request = WorkflowRequest(plan, build, fail_on or ("slower",), package, results)
        workflow: Callable[[WorkflowRequest], str] = import_module(SERVICES[name]).workflow
        text = workflow(request)
        if output is None:
            echo_unchanged(text)
            return
        if output.exists() and not force:
            raise PlanError("exists already", where=str(output), next_step="choose another name, or add --force")
        write_text(output, text)
        click.echo(f"wrote {output}; next: commit it with {plan}", err=True)

    options = option_group(
        click.argument("plan", metavar="PLAN.toml"),
        click.option(
            "--build",
            default="",
            metavar="COMMAND",
            help="Shell command that builds the program; it is run in the top folder of a source tree.",
        ),
        click.option(
            "--fail-on",
            multiple=True,
            type=click.Choice(NAMES),
            help="Outcome for which the job fails; may be repeated (default: slower).",
        ),
        click.option(
            "--results",
            metavar="NAME",
            help="Also keep the results of the main branch, in a branch (GitHub) or a cached folder (GitLab) of this "
            "name.",
        ),
        option_with_default("--package", default="dbdyno", metavar="NAME", help="Package to install with pip."),
        click.option("--force", is_flag=True, help="Overwrite the file."),
        click.option("-o", "--output", type=FILE, help="Write to this file instead of stdout."),
    )
    return click.command(name, help=help_text)(options(write))


command.add_command(
    _service(
        "github",
        "Write a workflow of GitHub Actions.\n\n\b\n"
        "dbdyno ci github bench/plan.toml --build 'make -j4' -o .github/workflows/performance.yml",
    )
)
command.add_command(
    _service(
        "gitlab",
        "Write a job of GitLab CI, to be included from .gitlab-ci.yml.\n\n\b\n"
        "dbdyno ci gitlab bench/plan.toml --build 'make -j4' -o ci/performance.yml",
    )
)
