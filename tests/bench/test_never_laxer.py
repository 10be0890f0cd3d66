"""libpq and the load's client against the same hostile server: ours accepts nothing that libpq refuses."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from hostile_server import ASKS, PASSWORD, HostileServer, TlsFront
from psycopg.conninfo import make_conninfo

from certificates import everything
from dbdyno import _core
from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.wire_options import OPTIONS, load_connection, refusal
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
KINDS = ("rsa", "sha384", "pss", "ed25519-signed", "self-signed", "stranger", "chain")
REQUIRE_AUTH = ("", "scram-sha-256", "md5", "password", "!password", "!none", "none,scram-sha-256")
BINDING = ("prefer", "disable", "require")
ROOTS = (None, "right.crt", "wrong.crt", "home")
SAMPLES = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[HostileServer]:
    with HostileServer(everything(folder)) as server:
        yield server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home folder; no option of libpq is set in the environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for option in psycopg.pq.Conninfo.get_defaults():
        if option.envvar:
            monkeypatch.delenv(option.envvar.decode(), raising=False)
    (tmp_path / ".postgresql").mkdir()
    return tmp_path


class Pair:
    """Outcomes of libpq and of our client with the same options on the same server."""

    def __init__(self, server: HostileServer, **more: str) -> None:
        base = {"host": "localhost", "hostaddr": "127.0.0.1", "port": str(server.port), "user": "u", "dbname": "d"}
        options = {**base, "password": PASSWORD, "connect_timeout": "10", **more}
        server.given.clear()
        # Where libpq does not come in, ours is tried as libpq would try first.
        encrypted = more.get("sslmode") != "allow"
        self.libpq = ""
        try:
            with psycopg.connect(**options, autocommit=True) as conn:  # type: ignore[arg-type]
                encrypted = bool(conn.pgconn.ssl_in_use)
        except psycopg.Error as error:
            self.libpq = str(error)
        self.libpq_gave = set(server.given)
        server.given.clear()
        self.ours = self._ours(options, encrypted)
        self.ours_gave = set(server.given)

    @staticmethod
    def _ours(options: dict[str, str], encrypted: bool) -> str:
        try:
            connection = load_connection(options, encrypted=encrypted)
            arm = {"name": "a", "sessions": 1, "connection": connection}
            arm["scripts"] = [{"name": "s", "text": "select 1;"}]
            _core.Load({"seed": 1, "arms": [arm]}).try_connect()
        except Exception as error:
            return str(error) or type(error).__name__
        return ""

    def laxer(self) -> str:
        """Return in what way our client was laxer than libpq; empty if it was not."""
        if not self.ours and self.libpq:
            return f"ours connected, libpq did not: {self.libpq}"
        if self.ours_gave - self.libpq_gave - {"scram"}:
            return f"ours gave away {self.ours_gave}, libpq {self.libpq_gave or 'nothing'}"
        return ""


def root_options(root: str | None, folder: Path, home: Path) -> dict[str, str]:
    default = home / ".postgresql" / "root.crt"
    default.unlink(missing_ok=True)
    if root == "home":
        default.write_bytes((folder / "right.crt").read_bytes())
        return {}
    return {"sslrootcert": str(folder / root)} if root else {}


def compare(server: HostileServer, folder: Path, home: Path, case: tuple[str | None, ...]) -> str:
    mode, root, kind, ask, require, binding, tls = case
    server.chain, server.ask, server.tls = str(kind), str(ask), tls == "tls"
    words = {"sslmode": str(mode), "channel_binding": str(binding)} | ({"require_auth": require} if require else {})
    return Pair(server, **words, **root_options(root, folder, home)).laxer()


def cases() -> list[tuple[str | None, ...]]:
    return list(itertools.product(MODES, ROOTS, KINDS, ASKS, REQUIRE_AUTH, BINDING, ("tls", "no tls")))


def test_ours_accepts_nothing_that_libpq_refuses(server: HostileServer, folder: Path, home: Path) -> None:
    drawn = random.Random(11).sample(cases(), SAMPLES)
    found = {case: words for case in drawn if (words := compare(server, folder, home, case))}
    assert not found


@pytest.mark.soak
def test_ours_accepts_nothing_that_libpq_refuses_over_the_whole_product(
    server: HostileServer, folder: Path, home: Path
) -> None:
    everything = cases()
    found = {case: words for case in everything if (words := compare(server, folder, home, case))}
    print(f"{len(everything)} combinations, ours laxer in {len(found)}")
    assert not found


@pytest.mark.parametrize(
    "mode", [*(pytest.param(m, marks=pytest.mark.soak) for m in ("require", "verify-ca")), "verify-full"]
)
def test_ours_trusts_no_certificate_that_libpq_does_not(server: HostileServer, folder: Path, mode: str) -> None:
    server.ask, server.tls = "trust", True
    roots = ["right.crt", "wrong.crt", "expired.crt", "middle.crt", "both.crt", "plain.crt", "self.crt"]
    lists = ["", "revoked.crl", "none.crl", "expired.crl", "other.crl"]
    found, agreed = {}, 0
    for kind, root, crl in itertools.product(server.certificates, roots, lists):
        if crl and root not in ("right.crt", "both.crt"):
            continue
        server.chain = kind
        more = {"sslcrl": str(folder / crl)} if crl else {}
        pair = Pair(server, sslmode=mode, sslrootcert=str(folder / root), **more)
        agreed += not pair.ours
        if pair.laxer():
            found[kind, root, crl] = pair.laxer()
    assert not found
    assert agreed >= 15


@pytest.mark.parametrize(
    ("kind", "ask", "more"),
    [
        ("rsa", "scram-plus", {"channel_binding": "require", "sslmode": "require"}),
        ("sha384", "scram-plus", {"channel_binding": "require", "sslmode": "require"}),
        ("pss", "scram-plus", {"channel_binding": "require", "sslmode": "require"}),
        ("ed25519-signed", "scram-plus", {"channel_binding": "disable", "sslmode": "require"}),
        ("rsa", "md5", {"require_auth": "md5", "sslmode": "require"}),
        ("rsa", "password", {"sslmode": "require"}),
        ("rsa", "password", {"require_auth": "password", "sslmode": "disable"}),
        ("rsa", "scram", {"require_auth": "scram-sha-256", "ssl_max_protocol_version": "TLSv1.2"}),
        ("rsa", "trust", {"sslmode": "require", "ssl_min_protocol_version": "TLSv1.3", "sslsni": "0"}),
    ],
)
def test_what_libpq_accepts_and_we_implement_ours_accepts_too(
    server: HostileServer, kind: str, ask: str, more: dict[str, str]
) -> None:
    server.chain, server.ask, server.tls = kind, ask, True
    pair = Pair(server, **more)
    assert (pair.libpq, pair.ours) == ("", "")


@pytest.mark.parametrize(
    ("kind", "ask", "more", "words"),
    [
        ("rsa", "password", {"require_auth": "scram-sha-256"}, "require_auth=scram-sha-256"),
        ("rsa", "password", {"sslmode": "disable"}, "not encrypted"),
        ("rsa", "half-scram", {"sslmode": "require"}, "step 0 instead of 12"),
        ("rsa", "password-after-scram", {"sslmode": "require"}, "although it had its answer"),
        ("ed25519-signed", "scram-plus", {"sslmode": "require"}, "cannot be bound"),
        ("rsa", "trust", {"sslmode": "verify-ca"}, "need an sslrootcert"),
        ("rsa", "trust", {"sslmode": "require", "sslrootcert": "system"}, "verify-full"),
    ],
)
def test_an_attack_is_refused_in_words(
    server: HostileServer, kind: str, ask: str, more: dict[str, str], words: str
) -> None:
    server.chain, server.ask, server.tls = kind, ask, True
    assert words in Pair(server, **more).ours


def test_the_users_own_roots_count_as_they_do_for_libpq(server: HostileServer, folder: Path, home: Path) -> None:
    server.chain, server.ask, server.tls = "stranger", "trust", True
    assert not Pair(server, sslmode="require").ours
    root_options("home", folder, home)
    pair = Pair(server, sslmode="require")
    assert pair.libpq and "cannot connect" in pair.ours
    server.chain = "revoked"
    assert not Pair(server, sslmode="require").ours
    (home / ".postgresql" / "root.crl").write_bytes((folder / "revoked.crl").read_bytes())
    pair = Pair(server, sslmode="require")
    assert pair.libpq and "cannot connect" in pair.ours


def test_every_option_of_this_libpq_has_its_row() -> None:
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    assert known <= set(OPTIONS), known - set(OPTIONS)
    assert all(option.reason for option in OPTIONS.values() if option.how != "passed")


def test_the_defaults_of_libpq_are_never_refused() -> None:
    defaults = psycopg.pq.Conninfo.get_defaults()
    assert refusal({o.keyword.decode(): (o.compiled or b"").decode() for o in defaults}) is None


@pytest.mark.parametrize(
    "option",
    [
        {"gssencmode": "require"},
        {"requirepeer": "postgres"},
        {"sslcert": "me.crt"},
        {"sslcertmode": "require"},
        {"scram_client_key": "x"},
        {"replication": "database"},
        {"min_protocol_version": "3.2"},
        {"an_option_of_tomorrow": "1"},
    ],
)
def test_what_the_client_cannot_honour_is_refused_by_name(option: dict[str, str]) -> None:
    base = {"host": "h", "port": "1", "user": "u", "dbname": "d"}
    with pytest.raises(TargetError, match=next(iter(option))) as raised:
        load_connection({**base, **option}, encrypted=True)
    assert raised.value.next_step


def test_no_time_limit_means_none() -> None:
    base = {"host": "h", "port": "1", "user": "u", "dbname": "d"}
    assert load_connection({**base, "connect_timeout": "0"}, encrypted=True)["connect_timeout_s"] == 0
    assert load_connection({**base, "connect_timeout": "7"}, encrypted=True)["connect_timeout_s"] == 7


def test_a_certificate_that_only_the_load_is_shown_ends_before_there_is_a_run_folder(
    server: HostileServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control connection comes in; whoever is in between shows another certificate to the load's."""
    words = (
        'title = "t"\n[[workload.scripts]]\nname = "s"\ntext = "select 1;"\n[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n'
    )
    real = _core.Load
    with EmbeddedPostgres() as engine:
        own = engine.tcp_conninfo()
        with TlsFront(server.certificates, int(own["port"]), "rsa") as front:
            options = {**own, "port": front.port, "sslmode": "verify-ca", "sslrootcert": str(folder / "right.crt")}
            plan = replace(parse_plan(words, "p"), dsn=make_conninfo("", **options))

            def shown_another(spec: str) -> object:
                front.chain = "stranger"
                return real(spec)

            monkeypatch.setattr(_core, "Load", shown_another)
            with pytest.raises(TargetError, match="certificate"):
                start(plan, tmp_path / "runs")
            assert front.chain == "stranger", "the control connection did come in"
    assert not (tmp_path / "runs").exists()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl: make setup-test")
def test_a_certificate_of_version_1_that_libpq_takes_is_refused_by_name_before_there_is_a_run_folder(tmp_path: Path):
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)

    openssl(
        *[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
            "-days",
            "30",
            "-subj",
            "/CN=ca",
        ]
    )
    openssl(*["req", "-newkey", "rsa:2048", "-nodes", "-keyout", "s.key", "-out", "s.csr", "-subj", "/CN=localhost"])
    openssl(
        *[
            "x509",
            "-req",
            "-in",
            "s.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "20",
            "-out",
            "s.crt",
        ]
    )
    words = (
        'title = "t"\n[[workload.scripts]]\nname = "s"\ntext = "select 1;"\n[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n'
    )
    chain = {"v1": (tmp_path / "s.crt", tmp_path / "s.key")}
    with EmbeddedPostgres() as engine:
        own = engine.tcp_conninfo()
        with TlsFront(chain, int(own["port"]), "v1") as front:
            options = {**own, "port": front.port, "sslmode": "verify-full", "sslrootcert": str(tmp_path / "ca.crt")}
            dsn = make_conninfo("", **{**options, "host": "localhost"})
            with psycopg.connect(dsn) as taken:
                assert taken.pgconn.ssl_in_use, "libpq takes it"
            with pytest.raises(TargetError, match="certificate") as raised:
                start(replace(parse_plan(words, "p"), dsn=dsn), tmp_path / "runs")
    assert "X.509 version 1" in str(raised.value)
    assert not (tmp_path / "runs").exists()
