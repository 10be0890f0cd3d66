"""Process that serves one mounted folder until it is unmounted or asked to end.

    {"device": ..., "folder": ..., "back": ...}   -->  on stdin
    {"process": 4711, ...}  or  {"message": ...}  <--  on stdout, once; then the process runs on independently

SIGTERM and SIGINT unmount the folder. If it is killed in another way, it leaves a mount that answers every access with
an error. With a lifeline (the read end of a pipe, and a number of seconds, as arguments) it also unmounts the folder
that many seconds after the process that started it has died. Meanwhile the guardian stops the server that uses the
folder, and then unmounts it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time

from dbdyno.base.device_types import DeviceSpec, DeviceStatus
from dbdyno.base.errors import DeviceError, Error, ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.processes import python_command, python_environment
from dbdyno.device.mounts import check_folders, check_machine, open_mount

POLL_S = 0.05
GRACE_S = 30.0
"""Time after the death of its parent process within which a guardian may unmount the folder [s]."""
_STARTED: list[subprocess.Popen[bytes]] = []
"""Mount processes started here that outlive this process; nothing waits for their end."""


def start_server(spec: DeviceSpec, *, lifeline: bool = False) -> DeviceStatus:
    """Mount a folder in a separate process and return its initial state.

    The process outlives this one. With `lifeline`, it unmounts the folder `GRACE_S` seconds after this one has died.

    Raises:
        DeviceError: the folder cannot be mounted; nothing is left mounted.
        ModelError: the device or a setting is not valid.
    """
    from pathlib import Path

    check_machine()
    check_folders(Path(spec["folder"]), Path(spec["back"]))
    held, line = os.pipe() if lifeline else (-1, -1)
    process = subprocess.Popen(
        python_command("dbdyno.device.server", *([str(held), str(GRACE_S)] if lifeline else [])),
        env=python_environment(),
        cwd="/",
        pass_fds=[held] if lifeline else [],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if lifeline:
        os.close(held)  # the other end stays open as long as this process lives
    assert process.stdin is not None and process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(json.dumps(spec).encode())
        process.stdin.close()
        answer = process.stdout.readline()
    reply: JsonObject = json.loads(answer) if answer else {"message": "the process of the mount ended immediately"}
    if "message" not in reply:
        _STARTED.append(process)
        status: DeviceStatus = reply["status"]
        return status
    process.wait()
    if lifeline:
        os.close(line)
    kind = ModelError if reply.get("kind") == "ModelError" else DeviceError
    raise kind(reply["message"], where=reply.get("where"), next_step=reply.get("next_step"))


def main(arguments: list[str]) -> int:
    """Mount the folder that the specification on stdin describes, serve it until the end, and return the exit code."""
    lifeline, grace_s = (int(arguments[0]), float(arguments[1])) if arguments else (None, 0.0)
    spec: DeviceSpec = json.loads(sys.stdin.read())
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    try:
        mount = open_mount(spec)
    except Error as error:
        kind = type(error).__name__
        _say({"message": error.message, "where": error.where, "next_step": error.next_step, "kind": kind})
        return 2
    _say({"status": mount.status()})
    orphaned_at = None
    while not asked.wait(POLL_S) and not mount.has_ended():
        if orphaned_at is None and lifeline is not None and select.select([lifeline], [], [], 0)[0]:
            orphaned_at = time.monotonic()
        if orphaned_at is not None and time.monotonic() - orphaned_at > grace_s:
            break
    mount.unmount(at_once=True)
    return 0


def _say(reply: JsonObject) -> None:
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.close()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.close()
    raise SystemExit(code)
