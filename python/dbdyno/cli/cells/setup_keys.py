"""`dbdyno cells setup-keys`: install a private key's public part on every cell, after checking host keys."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.cells.options import access_of, confirm, hosts_from, reach_options
from dbdyno.cli.parameters import FILE, option_with_default

if TYPE_CHECKING:
    from dbdyno.cells.hosts import Host
    from dbdyno.cells.keys import HostKey

NEW_KEY = Path("~/.ssh/dbdyno_cells")
_STRICT = (
    "on the cell, only the user may write to the home folder and ~/.ssh (StrictModes), and AuthorizedKeysFile in "
    "sshd_config must be ~/.ssh/authorized_keys"
)


@click.command()
@reach_options
@option_with_default("--new-key", type=FILE, default=NEW_KEY, help="Key to use; created if it does not exist.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, except about host keys.")
@click.option("--remove", is_flag=True, help="Remove the public key from every cell.")
@click.option("--accept-new", is_flag=True, help="Accept unknown host keys. A changed key is never accepted.")
def command(new_key: Path, dry_run: bool, yes: bool, remove: bool, accept_new: bool, **reach: Any) -> None:
    """Set up SSH keys on every cell.

    Make an ed25519 key if there is none, show the host key of every cell, and install the public key on each. Steps
    that are already done are skipped; a second call changes nothing.

    The first visit to a cell may need its password: the system's ssh asks for it on the terminal.

    \b
    dbdyno cells setup-keys -H @cell_group --user celladmin --dry-run
    dbdyno cells setup-keys -H @cell_group --user celladmin --remove
    """
    from dbdyno.cells.access import HostAccess
    from dbdyno.cells.keys import install_command, key_steps, make_key, read_host_keys

    hosts = hosts_from(reach)
    key = new_key.expanduser()
    if remove:
        _remove(hosts, key, dry_run, yes, reach)
        return
    known_hosts = HostAccess(access_of(reach), hosts[0]).own_known_hosts
    for step, done in key_steps(key).items():
        click.echo(f"{'there ' if done else 'to do '} {step}")
    shown = read_host_keys(hosts, known_hosts, access_of(reach))
    _show_host_keys(shown)
    if dry_run:
        public = Path(f"{key}.pub")
        text = public.read_text(encoding="utf-8") if public.is_file() else "ssh-ed25519 <new key>"
        click.echo(f"on each cell: {install_command(text)}")
        return
    if not yes and not click.confirm("Go on?", err=True):
        raise click.exceptions.Exit(2)
    make_key(key, "dbdyno cells")
    _trust(shown, known_hosts, accept_new)
    reach |= {"known_hosts": known_hosts}
    good = [entry.host for entry in shown if entry.known != "changed" and not entry.problem]
    failed = _install(good, key, reach)
    failed += _refusing_cells([host for host in good if host not in failed], key, reach)
    failed += [entry.host for entry in shown if entry.host not in good]
    if failed:
        click.echo(f"dbdyno: not done on {', '.join(host.name for host in failed)}", err=True)
        raise click.exceptions.Exit(2)
    click.echo(f"next: dbdyno cells show -H ... --key {new_key}", err=True)


def _remove(hosts: Sequence[Host], key: Path, dry_run: bool, yes: bool, reach: dict[str, object]) -> None:
    """Remove the public key from every cell; the user's local files are not removed."""
    from dbdyno.base.errors import CellsError
    from dbdyno.cells.commands import failure
    from dbdyno.cells.keys import remove_command
    from dbdyno.cells.ssh import run_everywhere

    public = Path(f"{key}.pub")
    if not public.is_file():
        raise CellsError(
            "does not exist, so the key to remove is not known",
            where=str(public),
            next_step="name the key with --new-key",
        )
    text = remove_command(public.read_text(encoding="utf-8"))
    click.echo(f"on each of {', '.join(host.name for host in hosts)}: {text}", err=True)
    if dry_run:
        return
    if not yes:
        confirm()
    answers = run_everywhere(
        hosts, access_of({**reach, "keys": reach["keys"] or ((key,) if key.is_file() else ())}), text
    )
    failed = [answer for answer in answers if failure(answer)]
    for answer in answers:
        if answer in failed:
            click.echo(f"dbdyno: {answer.host.name}: {failure(answer)}; the key may still be there", err=True)
        else:
            click.echo(f"{answer.host.name}: the key is not there")
    if failed:
        raise click.exceptions.Exit(2)
    click.echo(f"{key} and {public} are still here; remove them manually once no cell has the key", err=True)


def _show_host_keys(host_keys: Sequence[HostKey]) -> None:
    words = {"yes": "known  ", "no": "NEW    ", "changed": "CHANGED"}
    for entry in host_keys:
        what = entry.problem or f"{words[entry.known]} {entry.fingerprint}"
        click.echo(f"{entry.host.name}: {what}")
        if entry.known == "changed":
            click.echo(
                f"  next: its key has changed: find out why, then remove the old key: {entry.forget}",
                err=True,
            )


def _trust(host_keys: Sequence[HostKey], known_hosts: Path, accept_new: bool) -> None:
    from dbdyno.cells.keys import trust

    new = [entry for entry in host_keys if entry.known == "no" and not entry.problem]
    if not new:
        return
    if accept_new or click.confirm(
        f"Accept {len(new)} new host key(s)? First compare the fingerprints through another channel", err=True
    ):
        trust(new, known_hosts)
        return
    raise click.exceptions.Exit(2)


def _install(hosts: Sequence[Host], key: Path, reach: Mapping[str, Any]) -> list[Host]:
    """Install the key on cells that do not have it yet, and return the cells on which that failed.

    A login is tried with the key itself, then with other keys, then with the system's ssh. A cell that permits the
    login but fails afterwards is not asked for a password, because the command would fail again.
    """
    from dbdyno.base.processes import child_environment, find_program
    from dbdyno.cells.commands import failure
    from dbdyno.cells.keys import install_command, install_with_ssh
    from dbdyno.cells.ssh import run_everywhere

    text = Path(f"{key}.pub").read_text(encoding="utf-8")
    left = list(hosts)
    failed: list[Host] = []
    for keys in ((key, *reach["keys"]), *(() if reach["keys"] else ((),))):
        if not left:
            return failed
        access = access_of({**reach, "keys": keys})
        answers = run_everywhere(left, access, install_command(text))
        for answer in answers:
            if answer.problem is None and answer.code == 0:
                click.echo(f"{answer.host.name}: the key is there")
                left.remove(answer.host)
            elif answer.problem is None:
                click.echo(
                    f"dbdyno: {answer.host.name}: login works, but it stores no key: {failure(answer)}", err=True
                )
                left.remove(answer.host)
                failed.append(answer.host)
    ssh = find_program("ssh")
    if left and ssh is None:
        click.echo("dbdyno: PATH contains no ssh program, which could ask for a password", err=True)
        return [*failed, *left]
    for host in list(left):
        click.echo(f"{host.name}: no login yet; ssh may ask for the password", err=True)
        visit = install_with_ssh(host, text, reach["known_hosts"], access_of(reach))
        if subprocess.run(visit, executable=ssh, env=child_environment(), check=False).returncode == 0:
            click.echo(f"{host.name}: the key is there now")
            left.remove(host)
    return [*failed, *left]


def _refusing_cells(hosts: Sequence[Host], key: Path, reach: dict[str, object]) -> list[Host]:
    """Return the cells that have the key but refuse a login with it."""
    from dbdyno.cells.failures import REFUSED
    from dbdyno.cells.ssh import run_everywhere

    if not hosts:
        return []
    answers = run_everywhere(hosts, access_of({**reach, "keys": (key,)}), "true")
    refused = [answer for answer in answers if answer.problem]
    for answer in refused:
        name, unlocked = answer.host.name, answer.problem == REFUSED
        click.echo(f"dbdyno: {name}: the key is there, but: {answer.problem}", err=True)
        click.echo(f"  next: {_STRICT if unlocked else answer.next_step}", err=True)
    return [answer.host for answer in refused]
