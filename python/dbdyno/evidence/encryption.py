"""Encryption of a capture's messages with the user's key, so that no value from a client is on disk unencrypted.

    key = read_key(Path("capture.key"))     # openssl rand -base64 32 > capture.key; chmod 600 capture.key
    with encrypt_parts(aside, key):            # what is written into aside/wire/ stays in memory until it is encrypted
        ...
    with messages_of(run, key_file) as folder:   # a folder in memory whose wire/ can be read
        ...

A part of `wire/` becomes a file that ends in `.encrypted`: Fernet of the library `cryptography` (AES-128 in CBC mode,
authenticated by HMAC-SHA256). The other tables of a capture contain no values.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import make_inner_folder, os_errors_as, write_atomically
from dbdyno.base.memory_folder import memory_folder
from dbdyno.evidence.run import Run

ENDING = ".encrypted"
WIRE = "wire"
_KEY_BYTES = 32
_LOOK_S = 0.5
_MAKE = "openssl rand -base64 32 > capture.key; chmod 600 capture.key"


def read_key(path: Path) -> bytes:
    """Return the key in a file that only its owner can read: 32 random bytes in base64.

    Raises:
        EvidenceError: The file cannot be read, has no key, or others may read it.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "holds no text"
        raise EvidenceError(
            f"the key cannot be read: {said}", where=str(path), next_step=f"create a key with: {_MAKE}"
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise EvidenceError(
            f"other users may read the key (mode {stat.S_IMODE(mode):04o})",
            where=str(path),
            next_step=f"run `chmod 600 {path}`",
        )
    try:
        found = base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_"))
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != _KEY_BYTES:
        raise EvidenceError(
            "does not contain a key: expected 32 bytes in base64",
            where=str(path),
            next_step=f"create a key with: {_MAKE}",
        )
    return base64.urlsafe_b64encode(found)


def is_encrypted(run: Path) -> bool:
    """Return True if the messages of a run are encrypted."""
    return any((run / WIRE).glob(f"*{ENDING}"))


@contextlib.contextmanager
def encrypt_parts(folder: Path, key: bytes | None) -> Iterator[None]:
    """Hold in memory what is written into `folder/wire/`, and encrypt each part when it is complete.

    With no key, nothing is done.

    Raises:
        EvidenceError: There is no file system in memory, or a part cannot be written.
    """
    if key is None:
        yield
        return
    with memory_folder() as memory:
        place = folder / WIRE
        place.symlink_to(memory, target_is_directory=True)
        kept = folder / f".{WIRE}"
        make_inner_folder(kept)
        ended = threading.Event()
        sealer = threading.Thread(target=_encrypt_until, args=(ended, memory, kept, key), daemon=True)
        sealer.start()
        try:
            yield
        finally:
            ended.set()
            sealer.join()
        _encrypt(memory, kept, key)
        place.unlink()
        kept.rename(place)


def _encrypt_until(ended: threading.Event, memory: Path, path: Path, key: bytes) -> None:
    # A part that fails here is tried again at the end; only then is it an error.
    while not ended.wait(_LOOK_S):
        with contextlib.suppress(EvidenceError, OSError):
            _encrypt(memory, path, key)


def _encrypt(memory: Path, path: Path, key: bytes) -> None:
    from cryptography.fernet import Fernet

    for part in sorted(memory.glob("*.parquet")):
        place = path / f"{part.name}{ENDING}"
        with os_errors_as(EvidenceError, "cannot be written", place, "free disk space or check the permissions"):
            write_atomically(place, Fernet(key).encrypt(part.read_bytes()), durable=True)
        part.unlink()


@contextlib.contextmanager
def messages_of(run: Run, key_file: Path | None) -> Iterator[Path]:
    """Yield a folder whose `wire/` has a captured run's messages: the run's folder, or a decrypted copy in memory.

    Raises:
        EvidenceError: The messages are encrypted and the key is missing or wrong, or a key is given for messages that
            are not encrypted.
    """
    if not is_encrypted(run.path):
        if key_file is not None:
            raise EvidenceError(
                "the messages of the capture are not encrypted", where=str(run.path), next_step="leave --key-file out"
            )
        yield run.path
        return
    if key_file is None:
        raise EvidenceError(
            "the messages of the capture are encrypted",
            where=str(run.path),
            next_step="name the key of the capture with --key-file FILE",
        )
    key = read_key(key_file)
    with memory_folder() as memory:
        make_inner_folder(memory / WIRE)
        for part in sorted((run.path / WIRE).glob(f"*{ENDING}")):
            (memory / WIRE / part.name.removesuffix(ENDING)).write_bytes(_decrypt(part, key))
        yield memory


def _decrypt(part: Path, key: bytes) -> bytes:
    from cryptography.fernet import Fernet, InvalidToken

    try:
        with os_errors_as(EvidenceError, "cannot be read", part, "check the permissions of the file"):
            return Fernet(key).decrypt(part.read_bytes())
    except InvalidToken:
        raise EvidenceError(
            "cannot be decrypted: the key is wrong, or the file was changed",
            where=str(part),
            next_step="name the key of the capture with --key-file FILE",
        ) from None
