"""Access to the server: the token, the server's names, other sites, and what every answer forbids a browser to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from asking import HOST, TOKEN, Browser

from dbdyno.base.errors import Error
from dbdyno.ui.guard import Access
from dbdyno.ui.serve import ListeningAddress, access_of, bind_socket, first_address, require_encryption


@pytest.fixture
def empty(tmp_path: Path) -> Browser:
    return Browser(tmp_path / "runs", tmp_path / "snaps")


def test_without_the_token_nothing_is_shown(empty: Browser) -> None:
    for address in ("/", "/run?id=x", "/static/ui.js", "/events", "/nowhere"):
        for cookie in (None, "", "kf2", TOKEN + "x"):
            answer = empty.get(address, cookie=cookie)
            assert (answer.status, "printed" in answer.text) == (403, True)


def test_the_token_becomes_a_cookie_and_leaves_the_address(empty: Browser) -> None:
    answer = empty.get(f"/runs?kind=a%20b&token={TOKEN}", cookie=None)
    assert answer.status == 303
    assert answer.headers["location"] == "/runs?kind=a+b"
    assert answer.headers["set-cookie"] == f"dbdyno={TOKEN}; Path=/; HttpOnly; SameSite=Lax"


@pytest.mark.parametrize("address", ("/?token=", "/?token=wrong", f"/?token={TOKEN}&token={TOKEN}"))
def test_a_wrong_token_is_refused_even_with_the_cookie(empty: Browser, address: str) -> None:
    assert empty.get(address).status == 403


def test_the_way_in_leads_to_no_other_site(empty: Browser) -> None:
    answer = empty.get(f"//evil.example/?token={TOKEN}", cookie=None)
    assert answer.status == 303
    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    "host",
    ("evil.example", "evil.example:8421", "127.0.0.1.evil.example", "localhost.evil.example:8421", "10.0.0.9", ""),
)
def test_a_foreign_name_that_leads_here_gets_nothing(empty: Browser, host: str) -> None:
    assert empty.get("/", ("host", host)).status == 421


@pytest.mark.parametrize("host", ("localhost", "LOCALHOST:1", "127.0.0.1:8421", "[::1]:8421"))
def test_the_names_of_this_machine_are_answered(empty: Browser, host: str) -> None:
    assert empty.get("/", ("host", host)).status == 200


def test_two_host_headers_are_none(empty: Browser) -> None:
    assert empty.get("/", ("host", HOST), ("host", "evil.example")).status == 421


def test_beyond_this_machine_addresses_are_names_too_and_foreign_names_are_not() -> None:
    access = Access("t", "https", frozenset({"lab"}), any_address=True)
    assert [access.knows(one) for one in ("10.1.2.3:8421", "[fe80::1]:1", "lab:1")] == [True, True, True]
    assert not access.knows("evil.example")


def test_a_page_of_another_site_gets_nothing(empty: Browser) -> None:
    assert empty.get("/", ("origin", "http://evil.example")).status == 403
    assert empty.get("/", ("origin", "null")).status == 403
    assert empty.get("/", ("origin", f"http://{HOST}")).status == 200
    fetched = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"))
    assert empty.get("/", *fetched).status == 403
    clicked = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    assert empty.get("/", *clicked).status == 200


@pytest.mark.parametrize("method", ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"))
def test_nothing_can_be_written(empty: Browser, method: str) -> None:
    assert empty.get("/", method=method).status == 405


def test_every_answer_forbids_foreign_and_inline_content(empty: Browser) -> None:
    answers = [empty.get("/"), empty.get("/", cookie=None), empty.get("/nowhere"), empty.get("/static/ui.js")]
    answers += [empty.get(f"/?token={TOKEN}"), empty.get("/", ("host", "evil.example"))]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in policy


def test_pages_are_kept_by_no_cache(empty: Browser) -> None:
    assert empty.get("/").headers["cache-control"] == "no-store"


def test_pages_leave_this_machine_only_encrypted(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "10.0.0.1", "db.example.org"):
        with pytest.raises(Error, match="plain text") as raised:
            require_encryption(ListeningAddress(host))
        assert "--tls-cert" in str(raised.value) and "--behind-proxy" in str(raised.value)
        assert "ssh -L 8421:127.0.0.1:8421" in str(raised.value)
        require_encryption(ListeningAddress(host, certificate=tmp_path / "cert.pem"))
        require_encryption(ListeningAddress(host, proxy="https://lab.example.org"))
    for host in ("127.0.0.1", "::1", "localhost", "127.9.9.9"):
        require_encryption(ListeningAddress(host))
    with pytest.raises(Error, match="is not the origin of a URL"):
        require_encryption(ListeningAddress(proxy="lab.example.org"))


def test_behind_a_proxy_its_name_and_scheme_are_ours() -> None:
    where = ListeningAddress(proxy="https://lab.example.org")
    access = access_of(where, 8421)
    assert access.scheme == "https" and access.knows("lab.example.org")
    assert first_address(where, access, 8421) == f"https://lab.example.org/?token={access.token}"


def test_a_token_is_new_each_time_and_is_not_shown_with_the_access() -> None:
    one, other = access_of(ListeningAddress(), 1), access_of(ListeningAddress(), 1)
    assert one.token != other.token and len(one.token) >= 32
    assert one.token not in repr(one)


def test_a_port_that_is_taken_is_named_with_the_way_out() -> None:
    with bind_socket(ListeningAddress(port=0)) as taken, pytest.raises(Error, match="cannot listen") as raised:
        bind_socket(ListeningAddress(port=taken.getsockname()[1]))
    assert "--port 0" in str(raised.value)
