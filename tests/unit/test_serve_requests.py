"""What `pywebgpu serve` answers to requests that no browser of its pages sends: raw bytes, over loopback only."""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pywebgpu.hosts import serve, site

WEIGHTS = bytes(range(256)) * 4
LONG = b"".join(b"line %d\n" % n for n in range(200))  # is sent by gzip where that is accepted
GOOD = "GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"
INNER = GOOD.replace("/ ", "/sub/inner.txt ", 1)  # For the page, all sources are looked at.


@pytest.fixture
def folders(tmp_path: Path) -> site.Folders:
    """A small web folder, with a secret beside it and links that lead there."""
    web = tmp_path / "web"
    web.mkdir()
    (web / "index.html").write_text("<!doctype html>page")
    (web / "sub").mkdir()
    (web / "sub" / "inner.txt").write_text("inner")
    (tmp_path / "secret.txt").write_text("secret")
    (web / "linked.txt").symlink_to(tmp_path / "secret.txt")
    (web / "above").symlink_to(tmp_path)
    (web / "circle.txt").symlink_to(web / "circle.txt")
    (web / "inside.txt").symlink_to(web / "sub" / "inner.txt")
    (web / ".txt").write_text("hidden")
    (web / "weights.safetensors").write_bytes(WEIGHTS)
    (web / "long.txt").write_bytes(LONG)
    (web / "empty.txt").write_text("")
    return site.Folders(web, tmp_path, tmp_path, None, tmp_path)


@pytest.fixture
def port(folders: site.Folders, capfd: pytest.CaptureFixture[str]) -> Iterator[int]:
    """A server's port. Nothing may be printed, and the server answers afterwards."""
    server = serve.start(0, site.Site(folders))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
        status, answer = ask(server.server_address[1], INNER)
        assert (status, answer.endswith(b"inner")) == (200, True)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert capfd.readouterr() == ("", "")


def ask(port: int, request: str | bytes, *, wait: float = 10) -> tuple[int, bytes]:
    """The status and the whole answer to bytes; status 0 where the connection ends without one."""
    text = request.replace("{port}", str(port)).encode("latin-1") if isinstance(request, str) else request
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as connection:
        answer = b""
        with contextlib.suppress(ConnectionError):  # Who is told to come again may still have been sending.
            connection.sendall(text)
        with contextlib.suppress(ConnectionError):
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                answer += part
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else 0, answer


HOSTS = {
    "localhost:{port}": 200,
    "LocalHost:{port}": 200,
    "127.0.0.1:{port}": 200,
    "[::1]:{port}": 200,
    "localhost": 421,
    "localhost:1": 421,
    "127.0.0.1": 421,
    "evil.example:{port}": 421,
    "evil.example": 421,
    "localhost.evil.example:{port}": 421,
    "localhost:{port}.evil.example": 421,
    "evil.example#localhost:{port}": 421,
    "user@localhost:{port}": 421,
    "127.0.0.2:{port}": 421,
    "0.0.0.0:{port}": 421,
    "2130706433:{port}": 421,
    "localhost.:{port}": 421,
    "": 421,
    "\xe9vil:{port}": 421,
    "localhost:{port}\r\nHost: evil.example": 400,
    "localhost:{port}\r\n evil.example": 421,
}


@pytest.mark.parametrize("host", HOSTS)
def test_only_names_of_this_machine_are_answered(port: int, host: str) -> None:
    assert ask(port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")[0] == HOSTS[host]


NO_HOST = {"HTTP/1.1": "GET / HTTP/1.1\r\n\r\n", "HTTP/1.0": "GET / HTTP/1.0\r\n\r\n"}


@pytest.mark.parametrize("name", NO_HOST)
def test_a_request_without_host_is_refused(port: int, name: str) -> None:
    assert ask(port, NO_HOST[name])[0] == 400


TARGETS = {
    "/": 200,
    "/?query": 200,
    "/sub/inner.txt": 200,
    "/inside.txt": 200,
    "//sub/inner.txt": 200,
    "/linked.txt": 404,
    "/circle.txt": 404,
    "/above/secret.txt": 404,
    "/../secret.txt": 404,
    "/sub/../../secret.txt": 404,
    "/%2e%2e/secret.txt": 404,
    "/%2e%2e%2fsecret.txt": 404,
    "/sub/%2e%2e/%2e%2e/secret.txt": 404,
    "/%252e%252e/secret.txt": 404,
    "/..%5csecret.txt": 404,
    "/..%c0%afsecret.txt": 404,
    "/%c0%ae%c0%ae/secret.txt": 404,
    "//secret.txt": 404,
    "/%2fetc%2fhosts.txt": 404,
    "/index.html%00.txt": 404,
    "/index.html%00": 404,
    "/%ff%fe": 404,
    "/\xff": 404,
    "/" + "a" * 300: 404,
    "/" + "a/" * 900: 404,
    "/" + "a" * 3000: 414,
    "/" + "a" * 60_000: 414,
    "/" + "a" * 200_000: 414,
    "//[": 404,
    "http://localhost:{port}/": 400,
    "http://evil.example/": 400,
    "*": 400,
    "evil": 400,
    "/sub": 404,
    "/sub/": 404,
    "/index.html/": 200,
    "/modules/uplot@1.6.32/dist/uPlot.esm.js": 302,
    "/modules/uplot@1.6.32/../../../evil": 404,
    "/modules/uplot@1.6.32/%2e%2e/%2e%2e/evil.js": 404,
    "/modules/uplot@1.6.32/a%0d%0aSet-Cookie:%20a=b.js": 404,
    "/modules/uplot@1.6.32/a%0dSet-Cookie:%20a=b.js": 404,
    "/modules/uplot@1.6.32/%e2%82%ac.js": 404,
    "/modules/uplot@%d9%a1/a.js": 404,
    "/modules/@evil/x@1/a.js": 404,
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[:40])
def test_a_target_is_answered(port: int, target: str) -> None:
    status, answer = ask(port, f"GET {target} HTTP/1.1\r\nHost: localhost:{{port}}\r\nConnection: close\r\n\r\n")
    assert status == TARGETS[target], answer[:300]
    assert b"secret" not in answer.partition(b"\r\n\r\n")[2]
    assert b"Set-Cookie" not in answer.partition(b"\r\n\r\n")[0]


HEAD = "GET / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n"
REQUESTS: dict[str, tuple[str | bytes, int]] = {
    "long header line": (f"{HEAD}X: {'a' * 70_000}\r\n\r\n", 431),
    "long header line without an end": (f"{HEAD}X: {'a' * 200_000}", 431),
    "many headers": (HEAD + "X: a\r\n" * 500 + "\r\n", 431),
    "header without a colon": (f"{HEAD}nonsense\r\n\r\n", 200),
    "header with NUL": (f"{HEAD}X: a\0b\r\n\r\n", 200),
    "bytes that are no text": (f"{HEAD}X: \xff\xfe\r\n\r\n", 200),
    "a tag of bytes": (f"{HEAD}If-None-Match: \xff\r\nAccept-Encoding: \xff\r\n\r\n", 200),
    "POST": (HEAD.replace("GET", "POST") + "Content-Length: 4\r\n\r\nbody", 501),
    "PUT without an end": (HEAD.replace("GET", "PUT") + "Content-Length: 99999999\r\n\r\nbody", 501),
    "TRACE": (HEAD.replace("GET", "TRACE") + "\r\n", 501),
    "CONNECT": ("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n", 400),
    "lower case": (HEAD.replace("GET", "get") + "\r\n", 501),
    "method of Python": (HEAD.replace("GET", "__init__") + "\r\n", 501),
    "long method": (HEAD.replace("GET", "A" * 5000) + "\r\n", 501),
    "method of bytes": (HEAD.replace("GET", "\xff\x85") + "\r\n", 501),
    "no HTTP": ("hello\r\n\r\n", 400),
    "no version": ("GET /\r\n\r\n", 400),
    "HTTP/2": ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "version of superscripts": ("GET / HTTP/1.\xb2\r\n\r\n", 400),
    "version without an end": (f"GET / HTTP/1.{'1' * 5000}\r\n\r\n", 400),
    "four words": ("GET / a HTTP/1.1\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n", 400),
    "zeros": (bytes(1000), 400),
    "empty lines": ("\r\n\r\n\r\n", 0),
    "nothing": ("", 0),
    "half a request": ("GET / HTT", 400),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_answered_and_the_server_goes_on(port: int, name: str) -> None:
    request, wanted = REQUESTS[name]
    status, answer = ask(port, request)
    assert status == wanted, answer[:300]
    if wanted == 200:
        assert answer.endswith(b"<!doctype html>page")


def test_a_body_is_no_second_request(port: int) -> None:
    for header in (f"Content-Length: {len(INNER)}", "Transfer-Encoding: chunked"):
        request = f"GET / HTTP/1.1\r\nHost: localhost:{{port}}\r\n{header}\r\n\r\n{INNER}"
        assert ask(port, request)[1].count(b"HTTP/1.1 ") == 1


def test_requests_of_one_connection_are_answered_in_turn(port: int) -> None:
    answer = ask(port, GOOD * 3 + GOOD.replace("GET", "HEAD"))[1]
    assert (answer.count(b"HTTP/1.1 200"), answer.count(b"page")) == (4, 3)


def test_a_client_that_goes_away_is_nothing_to_tell(port: int) -> None:
    for request in ("", "GET /", INNER):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # It ends by a reset.
        connection.sendall(request.replace("{port}", str(port)).encode())
        connection.close()


# What Range asks of WEIGHTS, and the bytes of the answer; an empty slice is 416, None the whole by 200.
RANGES: dict[str, tuple[int, int] | None] = {
    "bytes=0-0": (0, 1),
    "bytes=0-3": (0, 4),
    "bytes=1000-1023": (1000, 1024),
    "bytes=1000-1024": (1000, 1024),
    "bytes=1000-999999999999": (1000, 1024),
    "bytes=1000-": (1000, 1024),
    "bytes=0-": (0, 1024),
    "bytes=-1": (1023, 1024),
    "bytes=-1024": (0, 1024),
    "bytes=-5000": (0, 1024),
    "BYTES=007-8": (7, 9),
    "bytes=1024-": (0, 0),
    "bytes=1024-2000": (0, 0),
    "bytes=999999999999999999-": (0, 0),
    "bytes=-0": (0, 0),
    "bytes=3-2": None,
    "bytes=-": None,
    "bytes=--1": None,
    "bytes=0-1,4-5": None,
    "bytes=0 - 1": None,
    "bytes=0x1-2": None,
    "bytes=\xb2-": None,
    "bytes=9-3,--1,99999999999999999999-": None,
    f"bytes=0-{'9' * 5000}": None,
    "lines=0-3": None,
    "a=b=c": None,
    "": None,
}


def get(port: int, path: str, *, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of an answer. Names of headers have _ for -."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    request = f"{method} {path} HTTP/1.1\r\nHost: localhost:{{port}}\r\nConnection: close\r\n{lines}\r\n"
    status, answer = ask(port, request)
    head, _, body = answer.partition(b"\r\n\r\n")
    return status, dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:]), body


@pytest.mark.parametrize("asked", RANGES, ids=lambda asked: asked[:30])
def test_a_range_is_answered(port: int, asked: str) -> None:
    status, headers, body = get(port, "/weights.safetensors", Range=asked)
    found = (status, headers.get("Content-Range"), body)
    match RANGES[asked]:
        case None:
            assert found == (200, None, WEIGHTS)
            assert headers["Accept-Ranges"] == "bytes"
        case 0, 0:
            assert found == (416, "bytes */1024", b"")
        case start, stop:
            assert found == (206, f"bytes {start}-{stop - 1}/1024", WEIGHTS[start:stop])
    assert headers["Content-Length"] == str(len(body))


# What is asked with bytes=0-3 of LONG, and the status. {tag} and {packed} are the file's, without and with gzip.
CONDITIONS: dict[str, tuple[dict[str, str], int]] = {
    "gzip accepted": ({"Accept_Encoding": "gzip"}, 206),
    "the same file": ({"If_Range": "{tag}"}, 206),
    "the same file, gzip accepted": ({"If_Range": "{tag}", "Accept_Encoding": "gzip"}, 206),
    "the rest of a file by gzip": ({"If_Range": "{packed}"}, 200),
    "another file": ({"If_Range": '"other"'}, 200),
    "a weak tag": ({"If_Range": "W/{tag}"}, 200),
    "a date": ({"If_Range": "Wed, 21 Oct 2015 07:28:00 GMT"}, 200),
    "what is there": ({"If_None_Match": "{tag}"}, 304),
    "what is there by gzip": ({"If_None_Match": "{packed}"}, 304),
    "what is not there": ({"If_None_Match": '"other"'}, 206),
    "HEAD": ({"method": "HEAD"}, 200),
    "OPTIONS": ({"method": "OPTIONS"}, 204),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_range_is_of_the_bytes_that_are_named(port: int, name: str) -> None:
    tag, packed = get(port, "/long.txt")[1]["ETag"], get(port, "/long.txt", Accept_Encoding="gzip")[1]["ETag"]
    conditions, wanted = CONDITIONS[name]
    asked = {header: value.format(tag=tag, packed=packed) for header, value in conditions.items()}
    status, headers, body = get(port, "/long.txt", Range="bytes=0-3", **asked)
    bodies = {200: b"" if name == "HEAD" else LONG, 206: LONG[:4], 204: b"", 304: b""}
    assert (status, body, "Content-Encoding" in headers) == (wanted, bodies[wanted], False)


def test_an_empty_file_has_no_range(port: int) -> None:
    assert get(port, "/empty.txt", Range="bytes=0-")[1]["Content-Range"] == "bytes */0"
    assert get(port, "/empty.txt", Range="bytes=-1")[0] == 416


@pytest.mark.parametrize("path", ["/", "/weights.safetensors", "*"])
def test_options_are_answered(port: int, path: str) -> None:
    status, headers, body = get(port, path, method="OPTIONS")
    assert (status, headers["Allow"], body) == (204, "GET, HEAD, OPTIONS", b"")
    assert "Content-Length" not in headers
    assert not [name for name in headers if name.startswith("Access-Control")]  # No other origin may read.


def connect(port: int, request: str) -> socket.socket:
    """A connection that has sent this. A whole request has been answered."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=5)
    connection.sendall(request.replace("{port}", str(port)).encode())
    answer = b""
    while request.endswith("\r\n\r\n") and not answer.endswith(b"inner"):
        answer += connection.recv(1 << 16)
    return connection


# What a connection has sent that waits for the rest of a request.
BEGINNINGS = {"nothing": "", "half a request": "GET /sub", "half a header": INNER[:-4], "an answered request": INNER}


def ended(connections: list[socket.socket], count: int) -> list[socket.socket]:
    """Those that the server has ended, once they are so many: half a request is refused before the end."""
    found: list[socket.socket] = []
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while len(found) < count:
            ready = [key.fileobj for key, _ in selector.select(timeout=10)]
            assert ready, f"{len(found)} ended, and no other does"
            for connection in connections:
                if connection in ready and not connection.recv(1 << 16):
                    selector.unregister(connection)
                    found.append(connection)
    return found


@pytest.mark.parametrize("name", BEGINNINGS)
def test_connections_that_wait_keep_nobody_waiting(port: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: those that wait longest end."""
    monkeypatch.setattr(serve, "ARRIVAL", 60.0)
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(connect(port, BEGINNINGS[name])) for _ in range(300)]
        assert ask(port, INNER, wait=5)[0] == 200
        assert not set(ended(waiting, len(waiting) - serve.WAITING)) & set(waiting[-4:])
        rest = INNER.removeprefix(BEGINNINGS[name]) or INNER
        for connection in waiting[-4:]:
            connection.sendall(rest.replace("{port}", str(port)).encode())
            assert connection.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_connection_that_waits_is_let_go(port: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "ARRIVAL", 0.2)
    with connect(port, BEGINNINGS[name]) as connection:
        while connection.recv(1 << 16):
            pass


def test_a_client_that_sends_slowly_is_let_go(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not help: a request has its time as a whole."""
    monkeypatch.setattr(serve, "ARRIVAL", 0.5)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.settimeout(0.05)
        while time.monotonic() - began < 8:
            try:
                connection.sendall(b"G")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    assert 0.4 < time.monotonic() - began < 5


def test_requests_beyond_the_limit_are_told_to_come_again(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    read = site.Site.file

    def slow(pages: site.Site, address: str) -> site.File | None:
        begun.release()
        go_on.wait(10)
        return read(pages, address)

    monkeypatch.setattr(site.Site, "file", slow)
    with contextlib.ExitStack() as stack:
        stack.callback(go_on.set)
        for _ in range(serve.REQUESTS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            connection.sendall(INNER.replace("{port}", str(port)).encode())
            assert begun.acquire(timeout=5)
        status, headers, _ = get(port, "/sub/inner.txt")
        assert (status, headers["Retry-After"], headers["Connection"]) == (503, "1", "close")
        go_on.set()
        assert connection.recv(12) == b"HTTP/1.1 200"
