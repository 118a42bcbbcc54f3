"""Strangers at the door: other users of the machine, other sites in the browser, bodies and heads that do not end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.core import peer
from app.core.settings import Settings
from app.core.token import install_token
from tests.attacks.conftest import ClientOf
from tests.support.pace import slack_seconds
from tests.support.product import environment, free_port

TOKEN = "a-token-of-ones-own-0123456789"
CLOSED = {
    "pages": ("GET", "/"),
    "study": ("GET", "/study"),
    "settings": ("GET", "/settings"),
    "a page that is none": ("GET", "/nothing-here"),
    "the API": ("GET", "/api/v1/problems"),
    "its description": ("GET", "/openapi.json"),
    "the export": ("GET", "/progress/export.jsonl"),
    "the cards": ("GET", "/study/exchange/rankzero.csv"),
    "figures": ("GET", "/metrics"),
    "cancelling a run": ("POST", "/api/v1/lab/runs/1/cancel"),
    "starting a run": ("POST", "/api/v1/lab/runs"),
    "cancelling an import": ("POST", "/study/exchange/jobs/0000000000000000/cancel"),
    "a stream of events": ("GET", "/api/v1/lab/runs/1/events"),
    "deleting": ("POST", "/progress/delete"),
    "a path that begins as an open one": ("GET", "/healthzz"),
    "dots": ("GET", "/static/../api/v1/problems"),
    "an escaped slash": ("GET", "/static%2f..%2fapi/v1/problems"),
    "two slashes": ("GET", "//api/v1/problems"),
}
BOXES = {
    "nothing": {},
    "a wrong token": {"Authorization": "Bearer wrong"},
    "an empty token": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": f"Basic {TOKEN}"},
    "the token as a cookie": {"Cookie": f"rankzero-80={TOKEN}"},
    "an empty cookie": {"Cookie": "rankzero-80="},
    "a cookie of bytes": {"Cookie": "rankzero-80=\u00e9\u00ff"},
    "a cookie of another port": {"Cookie": "rankzero-8000=x"},
    "a forged forward": {"X-Forwarded-For": "127.0.0.1"},
}


@pytest.fixture
def locked(client_of: ClientOf) -> TestClient:
    """An install that asks for its token: the test's client has no socket, so nobody vouches for it."""
    return client_of(token=TOKEN)


@pytest.mark.parametrize("what", CLOSED)
def test_without_the_token_nothing_is_told(locked: TestClient, what: str) -> None:
    method, path = CLOSED[what]
    reply = locked.request(method, path, headers={"Accept": "text/html"})
    assert reply.status_code in (401, 404)
    if reply.status_code == 401:
        assert "rankzero address" in reply.text
        assert reply.headers["www-authenticate"].startswith("Bearer")
    assert "set-cookie" not in reply.headers
    assert TOKEN not in reply.text
    assert "count" not in reply.text


@pytest.mark.parametrize("what", BOXES)
def test_what_is_no_token_opens_nothing(locked: TestClient, what: str) -> None:
    headers = {name: value.encode("latin-1") for name, value in BOXES[what].items()}
    reply = locked.get("/api/v1/problems", headers=headers)  # type: ignore[arg-type]
    assert reply.status_code == 401
    assert reply.headers["content-type"] == "application/problem+json"
    assert "rankzero address" in reply.json()["detail"]
    assert locked.get("/?token=wrong").status_code == 401


def test_that_it_lives_and_whether_it_is_ready_is_told_to_anybody(locked: TestClient) -> None:
    assert locked.get("/healthz").json() == {"status": "ok"}
    assert locked.get("/readyz").json() == {"status": "not ready"}
    assert "workers" in locked.get("/readyz", headers={"Authorization": f"Bearer {TOKEN}"}).json()
    assert locked.get("/static/app.css").status_code == 200


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(locked: TestClient) -> None:
    reply = locked.get(f"/study?deck=x&token={TOKEN}")
    assert reply.status_code == 303
    assert reply.headers["location"] == "/study?deck=x"
    assert reply.headers["cache-control"] == "no-store"
    cookie = reply.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/", "rankzero-"):
        assert part in cookie
    assert TOKEN not in cookie
    assert locked.get("/study").status_code == 200
    assert locked.post("/study/undo", headers={"Origin": "https://evil.example"}).status_code == 403


def test_the_cookie_is_of_the_port_that_is_asked_and_good_for_every_server_behind_a_proxy(locked: TestClient) -> None:
    asked = {"Host": "127.0.0.1:8080"}
    given = locked.get(f"http://127.0.0.1:8001/?token={TOKEN}", headers=asked, follow_redirects=False)
    assert given.headers["set-cookie"].startswith("rankzero-8080=")
    assert locked.get("http://127.0.0.1:8002/study", headers=asked).status_code == 200
    assert locked.get("http://127.0.0.1:8002/study").status_code == 401
    assert locked.get("/study", headers={"Host": "127.0.0.1:99999"}).status_code == 401


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/", "/%5Cevil.example", "/%2f%2fevil.example"])
def test_the_exchange_leads_to_no_other_server(locked: TestClient, path: str) -> None:
    reply = locked.get(f"http://127.0.0.1{path}?token={TOKEN}")
    assert reply.status_code == 303
    assert reply.headers["location"].startswith("/")
    assert not reply.headers["location"].startswith(("//", "/\\"))


def test_programs_send_the_token_with_each_request(locked: TestClient) -> None:
    assert locked.get("/api/v1/problems", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert locked.get("/api/v1/problems").status_code == 401


def test_off_asks_for_none(client_of: ClientOf) -> None:
    assert client_of(token="off").get("/api/v1/problems").status_code == 200


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ValueError, match="16 characters"):
        Settings(token="short")  # type: ignore[arg-type]


def test_the_token_of_an_install_is_random_private_and_lasting(tmp_path: Path) -> None:
    one, two = (Settings(data=tmp_path / name, token="") for name in ("one", "two"))  # type: ignore[arg-type]
    first = install_token(one)
    assert first
    assert first == install_token(one) != install_token(two)
    assert len(first) >= 43
    path = tmp_path / "one" / "token"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert install_token(one) != first, "others could read it"
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.symlink_to(tmp_path / "two" / "token")
    with pytest.raises(OSError, match=r"symbolic|Too many"):
        install_token(one)


# --- the kernel's word ---

CLIENT, SERVER = ("127.0.0.1", 0x1F91), ("127.0.0.1", 8000)
V4 = (
    "   7: 0100007F:1F91 0100007F:1F40 {state} 00000000:00000000 00:00000000 00000000 {uid} 0 {inode} 1 0 20 4 30 10 -1"
)
MAPPED = V4.replace("0100007F:", "0000000000000000FFFF00000100007F:")
V6 = V4.replace("0100007F:", "00000000000000000000000001000000:")


def _line(form: str, uid: int = 1000, state: str = "01", inode: int = 7) -> str:
    return form.format(uid=uid, state=state, inode=inode)


@pytest.mark.parametrize("form", [V4, MAPPED])
@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_the_owner_of_a_socket_is_found_in_each_way_ipv4_is_written(form: str, host: str) -> None:
    assert list(peer.owners_of([_line(form)], (host, CLIENT[1]), (host, 8000))) == [1000]


def test_the_owner_of_an_ipv6_socket_is_found() -> None:
    assert list(peer.owners_of([_line(V6)], ("::1", CLIENT[1]), ("::1", 8000))) == [1000]
    assert list(peer.owners_of([_line(V6)], CLIENT, SERVER)) == []


@pytest.mark.parametrize(
    "line",
    [
        _line(V4, state="06"),  # TIME_WAIT
        _line(V4, state="05"),  # FIN_WAIT2
        _line(V4, state="0A"),
        _line(V4, uid=0, inode=0),  # closed by its owner: listed as root's
        _line(V4).replace("0100007F:1F91 0100007F:1F40", "0100007F:1F40 0100007F:1F91"),  # our own end
        _line(V4).replace(":1F91", ":1F92"),
        _line(V4).replace(":1F40", ":1F41"),
        _line(V4).replace("0100007F:1F91", "0200007F:1F91"),
        "  sl  local_address",
        "",
    ],
)
def test_a_socket_that_is_another_or_was_closed_vouches_for_nobody(line: str) -> None:
    assert list(peer.owners_of([line], CLIENT, SERVER)) == []


@pytest.mark.parametrize(
    ("client", "server"),
    [(("10.0.0.5", 1), SERVER), (CLIENT, ("10.0.0.5", 1)), (("localhost", 1), SERVER), (("", 0), SERVER)],
)
def test_only_loopback_is_looked_up(client: peer.Address, server: peer.Address) -> None:
    assert peer.is_same_user(client, server) is False


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_real_connection_of_ours_is_ours_until_it_is_closed(family: socket.AddressFamily, host: str) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux says whose a socket is")
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family))
        try:
            listener.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        listener.listen()
        ours = socket.create_connection(listener.getsockname()[:2])
        theirs, client = listener.accept()
        stack.enter_context(theirs)
        assert peer.is_same_user(client[:2], theirs.getsockname()[:2])
        ours.close()
        assert not peer.is_same_user(client[:2], theirs.getsockname()[:2])


# --- a real server ---


class Live:
    """A server of its own, as `rankzero serve` starts it."""

    def __init__(self, data: Path, port: int) -> None:
        self.data = data
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    @property
    def token(self) -> str:
        return (self.data / "token").read_text().strip()

    def status(self, path: str, **headers: str) -> int:
        request = urllib.request.Request(
            self.url + path, headers={name.replace("_", "-"): headers[name] for name in headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code

    def talk(self, *pieces: bytes, wait: float = 2.0) -> bytes:
        """Send these pieces and read until the server closes or is silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            heard = b""
            with contextlib.suppress(OSError):
                for piece in pieces:
                    connection.sendall(piece)
                while data := connection.recv(65536):
                    heard += data
            return heard


@pytest.fixture(scope="module")
def live(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    data = tmp_path_factory.mktemp("live") / "var"
    data.mkdir(mode=0o700)
    shutil.copy(sqlite_template, data / "rankzero.sqlite3")
    server = Live(data, free_port())
    code = (
        "from app.core import bodies, connections; bodies.FIRST_SECONDS = 1.0; connections.HEAD_SECONDS = 1.0\n"
        "from app import cli; cli.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", str(server.port)],
        env=environment(data, RANKZERO_REDIS_URL=f"unix://{data}/nothing.sock"),
    )
    try:
        deadline = time.monotonic() + 150
        while True:
            with contextlib.suppress(OSError):
                if server.status("/healthz") == 200:
                    break
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(120)


ASK = """
import json, sys, urllib.error, urllib.request
def ask(method, url, headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers), timeout=10) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
print(json.dumps([ask(*each) for each in json.loads(sys.argv[1])]))
"""
OTHER_USER = 65534


def _other_user(code: str, *arguments: str) -> str:
    """What a program says that another user of this machine runs."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin") or sys.executable
    done = subprocess.run(
        [python, "-I", "-c", code, *arguments],
        user=OTHER_USER,
        group=OTHER_USER,
        extra_groups=[],
        cwd="/",
        env={},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _as_other_user(asked: list[tuple[str, str, dict[str, str]]]) -> list[int]:
    found: list[int] = json.loads(_other_user(ASK, json.dumps(asked)))
    return found


@pytest.mark.slow
def test_our_own_user_is_let_in_without_the_token_by_the_kernels_word(live: Live) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux says whose a socket is")
    assert live.status("/api/v1/problems") == 200
    assert live.status("/") == 200


@pytest.mark.slow
@pytest.mark.parametrize("header", ["X_Forwarded_For", "Forwarded", "X_Real_IP", "Via"])
def test_what_a_proxy_passed_on_needs_the_token(live: Live, header: str) -> None:
    assert live.status("/api/v1/problems", **{header: "127.0.0.1"}) == 401
    assert live.status("/api/v1/problems", **{header: "127.0.0.1", "Authorization": f"Bearer {live.token}"}) == 200


@pytest.mark.slow
def test_another_user_of_the_machine_gets_nothing_and_gets_in_with_the_token(live: Live) -> None:
    closed = [each for each in CLOSED.values() if "static" not in each[1]]
    found = _as_other_user([(method, live.url + path, {}) for method, path in closed])
    assert set(found) == {401}, dict(zip(CLOSED, found, strict=False))
    with_token = {"Authorization": f"Bearer {live.token}"}
    asked = [("GET", live.url + "/api/v1/problems", with_token), ("GET", live.url + "/healthz", {})]
    assert _as_other_user(asked) == [200, 200]
    kept_no_cookie = _as_other_user([("GET", f"{live.url}/?token={live.token}", {})])
    assert kept_no_cookie == [401]


@pytest.mark.slow
def test_another_user_who_sends_and_closes_at_once_is_not_taken_for_root(live: Live) -> None:
    """Closed sockets are listed as root's, which is who these tests run as in CI."""
    body = b"kind=basic&deck=stolen&question=q&answer=a&version=0"
    form = ("Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}")
    code = (
        "import socket\n"
        f"for _ in range(30):\n    s = socket.create_connection(('127.0.0.1', {live.port}))\n"
        f"    s.sendall({_head('/study/own', *form) + body!r}); s.close()\n"
    )
    _other_user(code)
    time.sleep(0.5)
    with urllib.request.urlopen(f"{live.url}/study/exchange/rankzero.csv", timeout=10) as reply:
        assert b"stolen" not in reply.read()


def _head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


CHUNKED = ("Content-Type: application/json", "Transfer-Encoding: chunked")
MEGABYTE = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
BODIES = {
    "announced": ([_head("/api/v1/estimate", "Content-Length: 2000001")], b" 413 "),
    "announced beyond all numbers": ([_head("/api/v1/estimate", "Content-Length: " + "9" * 18)], b" 413 "),
    "an announced upload": ([_head("/study/exchange", "Content-Length: 300000000")], b" 413 "),
    "in chunks": ([_head("/api/v1/estimate", *CHUNKED), MEGABYTE, MEGABYTE], b" 413 "),
    "a form in chunks": (
        [
            _head("/study/own", "Content-Type: application/x-www-form-urlencoded", "Transfer-Encoding: chunked"),
            *[MEGABYTE] * 3,
        ],
        b"HTTP/1.1 4",
    ),
    "a page that takes no body": (
        [_head("/study/undo", "Transfer-Encoding: chunked"), MEGABYTE, MEGABYTE, b"0\r\n\r\n"],
        b"HTTP/1.1",
    ),
    "that never comes": (
        [_head("/api/v1/estimate", "Content-Type: application/json", "Content-Length: 10"), b"{"],
        b" 408 ",
    ),
    "in a chunk that never ends": ([_head("/api/v1/estimate", *CHUNKED), b"5\r\n{"], b" 408 "),
    "with two lengths": ([_head("/api/v1/estimate", "Content-Length: 2", "Content-Length: 3"), b"{}"], b" 400 "),
    "with a length that is none": ([_head("/api/v1/estimate", "Content-Length: two")], b" 400 "),
    "with a negative length": ([_head("/api/v1/estimate", "Content-Length: -1")], b" 400 "),
    "a head that never ends": ([b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "], b" 408 "),
    "a head without an end in sight": ([b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 200_000], b" 400 "),
    "an address of 100,000 characters": ([_head("/" + "a" * 100_000, method="GET")], b"HTTP/1.1 4"),
    "a request that is none": ([b"\x16\x03\x01\x02\x00\x01\x00" * 20 + b"\r\n\r\n"], b" 400 "),
    "a smuggled second request": (
        [_head("/study/undo", "Content-Length: 5", "Transfer-Encoding: chunked"), b"0\r\n\r\n" + _head("/study/undo")],
        b"HTTP/1.1",
    ),
    "nothing at all": ([b""], b" 408 "),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", BODIES)
def test_a_body_or_head_that_is_too_large_or_too_slow_is_ended(live: Live, attack: str) -> None:
    pieces, expected = BODIES[attack]
    started = time.monotonic()
    heard = live.talk(*pieces)
    assert expected in heard[:400] or (heard == b"" and b"408" not in expected), heard[:400]
    assert time.monotonic() - started < 8 + slack_seconds()
    assert live.status("/healthz") == 200


@pytest.mark.slow
def test_heads_that_drip_hold_nothing(live: Live) -> None:
    """A byte now and then keeps no connection: the whole head has its time, each byte has none."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        slack = slack_seconds()
        started = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - started < 6 + slack:
                connection.sendall(b"X")
                connection.settimeout(0.2)
                with contextlib.suppress(TimeoutError):
                    if b"408" in connection.recv(1000):
                        break
        assert time.monotonic() - started < 5 + slack


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize(
    ("mode", "dest", "status"),
    [
        ("navigate", "document", 200),
        ("navigate", "iframe", 403),
        ("navigate", "embed", 403),
        ("no-cors", "image", 403),
        ("no-cors", "script", 403),
        ("cors", "empty", 403),
        ("websocket", "websocket", 403),
    ],
)
def test_a_page_of_another_site_may_lead_here_but_load_nothing(
    client_of: ClientOf, site: str, mode: str, dest: str, status: int
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert client_of().get("/study", headers=headers).status_code == status


@pytest.mark.parametrize("field", ["question", "answer", "deck", "tags", "trap"])
def test_script_in_an_own_card_stays_text_wherever_it_is_shown(client_of: ClientOf, field: str) -> None:
    client = client_of()
    hostile = "<img/src=x/onerror=alert(1)>\"'><script>alert(1)</script>[x](javascript:alert(1))"
    hostile = hostile.replace(",", "") if field == "tags" else hostile
    card = {"kind": "basic", "deck": "D", "question": "Q", "answer": "A", "trap": "T", "tags": "", field: hostile}
    client.post("/study/own", data=card)
    for path in ("/study/own", "/study/cards", "/study", "/search?q=alert", "/study/own/new"):
        shown = client.get(path).text
        assert "<img/src" not in shown
        assert "<script>alert" not in shown
        assert 'href="javascript:' not in shown
