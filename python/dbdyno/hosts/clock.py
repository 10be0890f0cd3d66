"""Comparison of host clocks: the offset of each host's clock, and the largest possible error.

A host answers a datagram with its time. How the round trip divides into its two directions is unknown, so the error of
a comparison is half its round-trip time; of several comparisons, the one with the shortest round trip is used.
Comparisons before, during and after a block give the drift.

    offset = host's clock - our clock        our time = host's time - fit.offset_at(host's time)
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import TargetError

KEY_BYTES = 16
TIMEOUT_S = 0.5
TRIES = 6
"""Number of consecutive unanswered rounds after which a host is reported as silent."""
DRIFT_SPAN_NS = 1_000_000_000
"""Minimum time span for fitting a drift [ns]."""
DRIFT_MOST = 1e-3
_ANSWER = struct.Struct("!q")


class SteadyClock:
    """Clock that starts at wall-clock time and is never stepped, like that of the load generator."""

    def __init__(self) -> None:
        self.base_ns = time.time_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        """Return the time [ns since the UNIX epoch]."""
        return self.base_ns + time.monotonic_ns()


class ClockServer(Closeable):
    """Thread that answers each datagram that begins with its key by sending the current time."""

    def __init__(self, now_ns: Callable[[], int], address: str) -> None:
        self.key = secrets.token_bytes(KEY_BYTES)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._now_ns, self._socket = now_ns, socket.socket(family, socket.SOCK_DGRAM)
        self._socket.bind((address, 0))
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._answer, name="clock", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _answer(self) -> None:
        while True:
            try:
                asked, sender = self._socket.recvfrom(64)
                if len(asked) == KEY_BYTES + 8 and secrets.compare_digest(asked[:KEY_BYTES], self.key):
                    self._socket.sendto(asked[KEY_BYTES:] + _ANSWER.pack(self._now_ns()), sender)
            except OSError:
                return


class ClockComparison(NamedTuple):
    """One comparison of a host's clock with this machine's: time on the host's clock, offset, and largest error."""

    host_ns: int
    offset_ns: int
    error_ns: int


class ClockFit(NamedTuple):
    """Linear fit of a host's clock offset over the host's time; `error_ns` bounds its error between the comparisons."""

    host_ns: int
    offset_ns: float
    drift: float
    error_ns: int

    def offset_at(self, host_ns: int) -> int:
        """Return the offset to subtract from a host's time [ns]."""
        return round(self.offset_ns + self.drift * (host_ns - self.host_ns))


def compare_clock(now_ns: Callable[[], int], address: str, port: int, key: bytes, rounds: int = 8) -> ClockComparison:
    """Compare a host's clock with this machine's several times and return the comparison with the smallest error.

    Raises:
        TargetError: The host's clock does not answer.
    """
    best: ClockComparison | None = None
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        line.settimeout(TIMEOUT_S)
        line.connect((address, port))
        silent = 0
        for _ in range(rounds):
            found = _round(line, key, now_ns)
            silent = 0 if found else silent + 1
            if found and (best is None or found.error_ns < best.error_ns):
                best = found
            if silent == TRIES:
                break
    if best is None:
        raise TargetError(
            "the clock of the worker does not answer",
            where=f"{address}, UDP port {port}",
            next_step="allow UDP datagrams between this host and the workers",
        )
    return best


def _round(line: socket.socket, key: bytes, now_ns: Callable[[], int]) -> ClockComparison | None:
    nonce, sent_ns = secrets.token_bytes(8), now_ns()
    try:
        line.send(key + nonce)
        while True:
            answer = line.recv(64)
            heard_ns = now_ns()
            if answer[:8] == nonce:
                break
    except OSError:
        return None
    (host_ns,) = _ANSWER.unpack(answer[8:16])
    return ClockComparison(host_ns, host_ns - (sent_ns + heard_ns) // 2, (heard_ns - sent_ns) // 2 + 1)


def fit_clock(clock_comparisons: Sequence[ClockComparison]) -> ClockFit:
    """Return the line through one host's comparisons, weighted by their certainty.

    The error of the fit is the error of the best comparison, plus the largest excess of a comparison's
    distance from the line over that comparison's own error (0 if there is none).
    """
    weights = [1 / own.error_ns**2 for own in clock_comparisons]
    whole, first = sum(weights), clock_comparisons[0].host_ns
    at = sum(w * (own.host_ns - first) for w, own in zip(weights, clock_comparisons, strict=True)) / whole
    base = clock_comparisons[0].offset_ns
    mean = sum(w * (own.offset_ns - base) for w, own in zip(weights, clock_comparisons, strict=True)) / whole
    drift = 0.0
    if max(own.host_ns for own in clock_comparisons) - min(own.host_ns for own in clock_comparisons) >= DRIFT_SPAN_NS:
        spread = sum(w * (own.host_ns - first - at) ** 2 for w, own in zip(weights, clock_comparisons, strict=True))
        joint = sum(
            w * (own.host_ns - first - at) * (own.offset_ns - base - mean)
            for w, own in zip(weights, clock_comparisons, strict=True)
        )
        drift = max(-DRIFT_MOST, min(DRIFT_MOST, joint / spread))
    line = ClockFit(first + round(at), base + mean, drift, 0)
    beside = max(abs(own.offset_ns - line.offset_at(own.host_ns)) - own.error_ns for own in clock_comparisons)
    error = min(own.error_ns for own in clock_comparisons) + max(0, beside)
    return ClockFit(line.host_ns, line.offset_ns, line.drift, error)
