"""`dbdyno advise --plan` and `--prove`: writing and running the experiments that could refute advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base import escaping
from dbdyno.base.errors import AdviceError
from dbdyno.base.files import read_user_file
from dbdyno.cli.output import Output

if TYPE_CHECKING:
    from dbdyno.advise.experiments import Experiment, Load
    from dbdyno.study.plan.plan import Plan

_SCHEMES = ("postgresql://", "postgres://")


def load_of(workload: str | None) -> Load | None:
    """Return the load named by `--workload`: a built-in workload or a script, whose text is copied into the plan.

    Raises:
        AdviceError: the script cannot be read.
        PlanError: the script does not parse.
    """
    from dbdyno._core import check_script
    from dbdyno.advise.experiments import Load
    from dbdyno.study.plan.workloads import NAMES

    if workload is None:
        return None
    if workload in NAMES:
        return Load(workload)
    path = Path(workload)
    try:
        text = read_user_file(path)
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else f"is not UTF-8 text at byte {error.start}"
        raise AdviceError(
            f"--workload cannot be read: {said}",
            where=workload,
            next_step=f"name a script, or a built-in mix: {', '.join(NAMES)}",
        ) from error
    name = escaping.escape_line(path.name, 60)
    if check_script(name, text) == 0:
        raise AdviceError("contains no SQL command", where=workload, next_step="end each SQL command with ;")
    return Load(name, text)


def write_plans(model: Mapping[str, Any], folder: Path, load: Load | None, force: bool) -> None:
    """Write a plan for each testable finding; report on stderr which findings cannot be tested and why.

    Raises:
        AdviceError: a file exists and `force` is False; in that case nothing is written.
    """
    from dbdyno.advise.experiments import plan_text, untestable
    from dbdyno.cli.output import write_text
    from dbdyno.study.plan.file import parse_plan

    texts: dict[Path, str] = {}
    for one in model["findings"]:
        if why := untestable(one, load):
            click.echo(f"no plan for {one['number']} {one['rule']}: {escaping.escape_line(why)}", err=True)
            continue
        path = folder / f"advise-{one['number']:02d}-{one['test']['setting']}.toml"
        texts[path] = plan_text(model, one, load)
        parse_plan(texts[path], path)
    if not force and (there := [path for path in texts if path.exists() or path.is_symlink()]):
        raise AdviceError(
            "exists already; no plan was written", where=str(there[0]), next_step="name another DIR, or add --force"
        )
    for path, text in texts.items():
        write_text(path, text)
        click.echo(f"wrote {path}; next: dbdyno advise --prove {path} --target DSN", err=True)
    if not texts:
        click.echo("no finding can be tested by a setting: no plan was written", err=True)


def prove(text: str, where: str, target: str, out: Path, yes: bool, output: Output) -> None:
    """Run the plan of a recommendation on the target, store the result, and print it."""
    from dbdyno.advise.experiments import read
    from dbdyno.advise.proofs import proof_of, save_proof
    from dbdyno.cli.compare import end_with_verdict
    from dbdyno.cli.run import run_plan, write_report
    from dbdyno.study.plan.file import parse_plan
    from dbdyno.study.plan.targets import plan_on_target

    experiment, own = read(text, where)
    plan = parse_plan(text, Path(where))
    _refuse(plan, experiment, target, where)
    plan = plan_on_target(plan, target)
    if not own:
        _ask(plan, where, yes)
    run = run_plan(plan, out)
    analysis = write_report(run, output)
    proof = proof_of(experiment, analysis, run.manifest, run.id)
    save_proof(proof)
    click.echo(
        f"advice {proof.rule}, {proof.setting} {proof.found} against {proof.proposed}: {proof.as_text}", err=True
    )
    if proof.gates:
        click.echo(f"gates failed: {', '.join(proof.gates)}", err=True)
    if proof.model_comparison:
        click.echo(proof.model_comparison, err=True)
    if not proof.is_on_same_engine:
        click.echo(_other_engine_note(experiment), err=True)
    end_with_verdict(analysis, "run")


def plan_of(model: Mapping[str, Any], named: str, load: Load | None) -> str:
    """Return the plan of the one finding with this rule or number.

    Raises:
        AdviceError: no finding or several match, or the finding cannot be tested.
    """
    from dbdyno.advise.experiments import plan_text, untestable

    found = [one for one in model["findings"] if named in (one["rule"], str(one["number"]))]
    if len(found) != 1:
        shown = ", ".join(f"{one['number']} {one['rule']}" for one in model["findings"]) or "none"
        raise AdviceError(
            f"{len(found) or 'no'} findings match {named!r}",
            where="--prove",
            next_step=f"name a plan file, or one finding by its number: {escaping.escape_line(shown, 400)}",
        )
    if why := untestable(found[0], load):
        raise AdviceError(why, where=f"{found[0]['number']} {found[0]['rule']}")
    return plan_text(model, found[0], load)


def _refuse(plan: Plan, experiment: Experiment, target: str, where: str) -> None:
    """Raise `AdviceError` unless the plan tests exactly this advice, and works only on this target."""
    from dbdyno.bench.kinds import EMBEDDED

    why, step = "", "write it again: `dbdyno advise DSN --plan DIR`"
    if target not in EMBEDDED and not target.startswith(_SCHEMES) and "=" not in target:
        why = f"a recommendation can be tested only on PostgreSQL, not on {target!r}"
        step = "write --target postgres, or --target with a connection string"
    elif [arm.settings for arm in plan.arms] != experiment.arms:
        why = "its arms are no longer the value found and the value proposed"
    elif plan.dsn is not None or any(arm.dsn or arm.server or arm.client for arm in plan.arms):
        why = "it names other servers or clients, but --prove uses only the target"
    elif plan.workload.command is not None:
        why = "it runs commands on this host"
    if why:
        raise AdviceError(why, where=where, next_step=step)


def _ask(plan: Plan, where: str, yes: bool) -> None:
    """Show what a plan that was changed or comes from elsewhere would do, and ask for confirmation."""
    from dbdyno.base.dsn import without_secrets
    from dbdyno.bench.kinds import kind_of
    from dbdyno.cli.cells.options import confirm

    shown = replace(plan, dsn=without_secrets(plan.dsn))
    click.echo(f"{where} comes from elsewhere or was changed. Proving it:", err=True)
    for order in kind_of(plan.dsn).load_bench().side_effects(shown, None):
        click.echo(f"  {escaping.escape_line(order, 400)}", err=True)
    if plan.alter_system:
        click.echo("  may change settings of the whole server (ALTER SYSTEM), and puts them back", err=True)
    if not yes:
        confirm()


def _other_engine_note(experiment: Experiment) -> str:
    if not experiment.engine:
        return "the server of the advice could not be identified: later advice does not show this result"
    return (
        f"the advice was for {experiment.engine}, but this ran on another server: later advice shows the result but "
        f"keeps its order; only a result from that server or a physical copy of it decides"
    )
