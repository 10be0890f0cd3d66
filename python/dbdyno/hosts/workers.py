"""Workers of a Dask scheduler: discovery, checks and tasks.

    with open_workers("tcp://desk:8786") as workers:       # a scheduler that runs: `dask scheduler`, `dask worker`
    with open_workers(hosts=hosts_of(["a,b,c"])) as workers:   # workers started over SSH, which end with the command

Every worker must have the same version of dbdyno as this process, so that results do not depend on the worker. Dask's
own configuration (`~/.config/dask`, `DASK_…`) says what else is needed to reach a scheduler, such as certificates of
TLS.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dbdyno.base.errors import Error, PlanError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.version import VERSION
from dbdyno.hosts.tasks import local_version

if TYPE_CHECKING:
    from dbdyno.hosts.ssh import SshHost

T = TypeVar("T")

CONNECT_S = 20.0
START_S = 60.0
"""Maximum time to wait for workers that were just started over SSH [s]."""
FETCH_S = 2.0
TICK_S = 0.02
SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "inproc://")
LOST = "check the logs of the scheduler and the workers; then start them again"
INSTALL = "run `pip install 'dbdyno[distributed]'` here and on every host"


def load_distributed() -> Any:
    """Import and return Dask's module `distributed`.

    Raises:
        TargetError: `distributed` is not installed.
    """
    try:
        found = importlib.import_module("distributed")
    except ImportError as error:
        raise TargetError(
            "the package distributed is not installed; work on many hosts needs it", next_step=INSTALL
        ) from error
    # What matters arrives as an error; Dask has set a level for several of its loggers.
    for name in ("asyncio", *(known for known in logging.root.manager.loggerDict if known.startswith("distributed"))):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return found


class Workers:
    """Workers of one scheduler: `addresses` in a fixed order, their `names`, and how many tasks they run at once."""

    def __init__(self, client: Any, scheduler: str) -> None:
        self.client, self.scheduler = client, scheduler
        self.addresses: list[str] = []
        self.names: dict[str, str] = {}
        self.slots = 0
        self.refresh()

    def refresh(self) -> list[str]:
        """Ask the scheduler for its current workers, and return their addresses.

        Raises:
            TargetError: The scheduler is gone.
        """
        try:
            known = self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]
        except Exception as error:
            raise self.lost_error(error) from error
        self.addresses = sorted(known)
        self.names = {address: _name(address, known[address]) for address in known}
        self.slots = sum(int(worker["nthreads"]) for worker in known.values())
        return self.addresses

    def submit(self, function: Callable[..., T], *arguments: Any, on: str | None = None) -> Task[T]:
        """Start a dbdyno function on any worker, or on the one with address `on`, and return the task.

        If a worker dies, another one executes its tasks, except those for which `on` names the dead worker.

        Raises:
            TargetError: The scheduler is gone.
        """
        placed: JsonObject = {} if on is None else {"workers": [on], "allow_other_workers": False}
        try:
            return Task(self, self.client.submit(function, *arguments, pure=False, **placed))
        except Exception as error:
            raise self.lost_error(error) from error

    def run_on_all(self, function: Callable[..., T], *arguments: Any, timeout_s: float = CONNECT_S) -> dict[str, T]:
        """Run a short dbdyno function on all workers at once, and return its results by worker address.

        Raises:
            TargetError: A worker or the scheduler does not answer.
        """
        try:
            answers = self.client.sync(
                self.client._run,  # `run` has no time limit, and a frozen worker never answers
                function,
                *arguments,
                workers=self.addresses,
                on_error="return",
                callback_timeout=timeout_s,
            )
        except Exception as error:
            raise self.lost_error(error) from error
        for address in self.addresses:
            if isinstance(answer := answers.get(address), BaseException) or address not in answers:
                raise self.lost_error(answer or OSError("the worker did not answer"), address)
        return {address: answers[address] for address in self.addresses}

    def lost_error(self, error: BaseException, where: str | None = None) -> TargetError:
        """Return the error for a lost scheduler or worker."""
        said = f"{type(error).__name__}: {error}".splitlines()[0][:160].rstrip(": ")
        return TargetError(f"the scheduler or a worker was lost: {said}", where=where or self.scheduler, next_step=LOST)


def _name(address: str, known: Mapping[str, Any]) -> str:
    """Return the user's name for a worker, or its listening address."""
    name = str(known["name"])
    return address.partition("://")[2] if name == address or name.isdecimal() else name


class Task(Generic[T]):
    """A function that runs on a worker."""

    def __init__(self, workers: Workers, future: Any) -> None:
        self.workers, self.future = workers, future

    def result(self, check: Callable[[], None] = lambda: None) -> T:
        """Wait for the task and return its result; `check` is called repeatedly while waiting, and may raise an error.

        Raises:
            TargetError: The worker or the scheduler is gone.
            Error: Whatever the function raises.
        """
        try:
            while not self.future.done():
                check()
                time.sleep(TICK_S)
            return self._fetched(check)
        except Error:
            raise
        except Exception as error:
            if type(error).__module__.startswith(("distributed", "asyncio", "concurrent")) or isinstance(
                error, OSError
            ):
                raise self.workers.lost_error(error) from error
            raise
        finally:
            self.future.release()

    def _fetched(self, check: Callable[[], None]) -> T:
        """Return the result of a finished task; TimeoutError means that its worker is gone."""
        deadline = time.monotonic() + CONNECT_S
        while True:
            check()
            try:
                found: T = self.future.result(timeout=FETCH_S)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise
            else:
                return found

    def cancel(self) -> None:
        """Cancel the task; a worker that has started it stops it soon."""
        with contextlib.suppress(Exception):
            self.future.cancel()


@contextlib.contextmanager
def open_workers(scheduler: str | None = None, hosts: Sequence[SshHost] = (), *, least: int = 1) -> Iterator[Workers]:
    """Connect to a scheduler, or start one over SSH with a worker on each host, and yield its workers.

    Args:
        scheduler: Address of a scheduler, such as tcp://desk:8786.
        hosts: Hosts to reach over SSH instead; the scheduler runs on the first one.
        least: Minimum number of workers.

    Raises:
        PlanError: The address is not valid.
        TargetError: The scheduler or a host cannot be reached, has another version of dbdyno, or workers are missing.
    """
    if scheduler is not None and not scheduler.startswith(SCHEMES):
        raise PlanError(
            f"{scheduler!r} is not the address of a scheduler",
            where="--scheduler",
            next_step="write an address such as tcp://desk:8786",
        )
    distributed = load_distributed()
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            from dbdyno.hosts.ssh import ssh_scheduler

            scheduler = stack.enter_context(ssh_scheduler(distributed, hosts))
        client = _client(distributed, scheduler)
        stack.callback(_close, client)
        if hosts:
            least = len(hosts)
            _wait_for(client, least)
        workers = Workers(client, scheduler)
        _refuse_few(workers, least)
        _refuse_other_versions(workers)
        yield workers


def _client(distributed: Any, scheduler: str) -> Any:
    try:
        return distributed.Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise TargetError(
            f"the scheduler does not answer: {str(error).splitlines()[0][:200]}",
            where=scheduler,
            next_step="start it with `dask scheduler`, and `dask worker ADDRESS` on every host",
        ) from error


def _wait_for(client: Any, count: int) -> None:
    """Wait up to `START_S` for workers that are starting; the caller must check how many there are."""
    with contextlib.suppress(TimeoutError):
        client.wait_for_workers(count, timeout=START_S)


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=5)


def _refuse_few(workers: Workers, least: int) -> None:
    if (there := len(workers.addresses)) < least:
        raise TargetError(
            f"has {there} worker{'' if there == 1 else 's'}, but {least} {'is' if least == 1 else 'are'} needed",
            where=workers.scheduler,
            next_step=f"start more workers with `dask worker {workers.scheduler}`",
        )


def _refuse_other_versions(workers: Workers) -> None:
    """Raise `TargetError` if a worker cannot import dbdyno or has a different version."""
    try:
        found = workers.run_on_all(local_version)
    except TargetError as error:
        if "ModuleNotFoundError" not in error.message:
            raise
        raise TargetError("a worker cannot import dbdyno", where=error.where, next_step=INSTALL) from error
    for address, version in found.items():
        if version != VERSION:
            raise TargetError(
                f"the worker has dbdyno {version}, but this machine has {VERSION}",
                where=address,
                next_step="install the same version on every host",
            )
