"""`pywebgpu serve`: the pages of web/ on this machine, where a small GPT trains and Python can be edited and run."""

from __future__ import annotations

import argparse
import errno
import io
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pywebgpu.hosts import site

if TYPE_CHECKING:
    from typing_extensions import Buffer

PORT = 8765
NAMES = ("localhost", "127.0.0.1", "[::1]")  # of this machine: any other name may be an attacker's (DNS rebinding)
LONGEST = 2048  # characters of an address
ARRIVAL = 10.0  # seconds for a request to arrive, the wait for it included
SECONDS = 30.0  # for an answer to be taken
REQUESTS = 64  # that are answered at a time; a browser sends six
WAITING = 64  # connections without a whole request; where there are more, the one that waits longest ends
RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII | re.IGNORECASE)  # one; several are answered by the whole
HEADERS = {
    # Memory shared with a worker, by which Python is interrupted, exists on isolated pages only.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def main(arguments: Sequence[str]) -> int:
    """The command: serves until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="pywebgpu serve",
        description=__doc__,
        epilog="With --model FILE a language model is served instead: pywebgpu serve --model FILE --help",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"the port of this machine ({PORT}); 0 takes a free one")
    parser.add_argument("--cdn", action="store_true", help="load Pyodide and the page's libraries from the network")
    parser.add_argument(
        "--pyodide",
        type=Path,
        metavar="FOLDER",
        help=f"a full distribution of Pyodide {site.PYODIDE}, with its packages",
    )
    options = parser.parse_args(arguments)
    try:
        pages = site.Site(site.find_folders(cdn=options.cdn, pyodide=options.pyodide))
        server = start(options.port, pages)
    except (site.SiteError, OSError, OverflowError) as error:
        print(f"pywebgpu serve: {failure(error, options.port)}", file=sys.stderr)
        return 2
    threading.Thread(target=pages.prepare, daemon=True).start()  # A page opened meanwhile does without.
    return run(server)


def start(port: int, pages: site.Site) -> Server:
    """A server that listens; its serve_forever answers. Raises OSError for a port that is taken."""
    return Server(("127.0.0.1", port), partial(Handler, pages))


def run(server: Server, path: str = "") -> int:
    """Answers until Ctrl-C; an exit status."""
    with server:
        print(f"{address(server)}{path}  (Ctrl-C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def failure(error: Exception, port: int) -> str:
    """Why no server listens on a port."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"another program has port {port}; --port 0 takes a free one, --port N that one"
    return str(error)


def address(server: Server) -> str:
    """The page's address: by this name, because only that, or https, may use WebGPU."""
    return f"http://localhost:{server.server_address[1]}/"


class Server(ThreadingHTTPServer):
    """A thread a connection, of which at most REQUESTS are answered and WAITING wait for a request."""

    daemon_threads = True
    request_queue_size = 1024  # A connection that finds no room here tries again after seconds.

    def __init__(self, *rest: Any) -> None:
        super().__init__(*rest)
        self._free = threading.Semaphore(REQUESTS)
        self._waiting: dict[socket.socket, None] = {}  # the connection that waits longest is the first
        self._lock = threading.Lock()
        names, port = {*NAMES, str(self.server_address[0])}, self.server_address[1]
        self.names = {f"{name}:{port}" for name in names} | (names if port == 80 else set())  # a request's Host

    @contextmanager
    def answering(self, connection: socket.socket) -> Iterator[bool]:
        """While a whole request is answered, its connection does not wait. False where REQUESTS others are answered."""
        is_free = self._free.acquire(blocking=False)
        with self._lock:
            self._waiting.pop(connection, None)
        try:
            yield is_free
        finally:
            if is_free:
                self._free.release()
            self._wait(connection)

    def _wait(self, connection: socket.socket) -> None:
        with self._lock:
            self._waiting[connection] = None
            if len(self._waiting) > WAITING:
                longest = next(iter(self._waiting))
                del self._waiting[longest]
                with suppress(OSError):  # Its thread reads the end, after a request that has just arrived.
                    longest.shutdown(socket.SHUT_RD)

    def process_request(self, request: socket.socket, client_address: object) -> None:  # type: ignore[override]
        self._wait(request)
        super().process_request(request, client_address)

    def close_request(self, request: socket.socket) -> None:  # type: ignore[override]
        with self._lock:
            self._waiting.pop(request, None)
        super().close_request(request)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """Takes what still arrives for a moment: an end with unread bytes would take the answer from the client."""
        end = time.monotonic() + 1
        with suppress(OSError):
            request.shutdown(socket.SHUT_WR)
            while (left := end - time.monotonic()) > 0:
                request.settimeout(left)
                if not request.recv(1 << 16):
                    break
        self.close_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A page that goes away while it loads is nothing to tell."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Requests(io.RawIOBase):
    """What a connection sends, up to a time that all reads of one request share."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.end = connection, 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        return self.connection.recv_into(buffer)


class Requests(BaseHTTPRequestHandler):
    """What all servers of this machine check of a request, and how they answer; connections stay open."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # of a first line without one: its answer has a status, too
    server_version, sys_version = "pywebgpu", ""
    server: Server

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._requests = _Requests(self.connection)
        self.rfile = io.BufferedReader(self._requests)

    def handle_one_request(self) -> None:
        self._requests.end = time.monotonic() + ARRIVAL
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Also refuses what was not meant for this server. The answer is then sent."""
        if not super().parse_request():
            return False
        wrong = self._wrong()
        if wrong is not None:
            self.send_error(*wrong)
        return wrong is None

    def _wrong(self) -> tuple[HTTPStatus, str] | None:
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1:
            return HTTPStatus.BAD_REQUEST, f"Needs one Host, got {len(hosts)}"
        if hosts[0].strip().lower() not in self.server.names:
            return HTTPStatus.MISDIRECTED_REQUEST, f"This server is {', '.join(sorted(self.server.names))}"
        if not self.path.startswith("/") and (self.command, self.path) != ("OPTIONS", "*"):
            return HTTPStatus.BAD_REQUEST, "An address starts with a slash"
        if len(self.path) > LONGEST:
            return HTTPStatus.REQUEST_URI_TOO_LONG, f"An address has at most {LONGEST} characters"
        return self.wrong_body()

    def wrong_body(self) -> tuple[HTTPStatus, str] | None:
        """What is wrong with a request's body, by its headers."""
        raise NotImplementedError

    def send_response(self, code: int, message: str | None = None) -> None:
        self.connection.settimeout(SECONDS)
        super().send_response(code, message)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def answer(self, status: HTTPStatus, body: bytes | None, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body and self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the page itself says what is missing."""


class Handler(Requests):
    """GET, also of a range, HEAD and OPTIONS."""

    def __init__(self, pages: site.Site, *rest: object) -> None:
        self.pages = pages
        super().__init__(*rest)  # type: ignore[arg-type]

    def wrong_body(self) -> None:
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # Nobody reads the body, which would look like another request.

    def do_GET(self) -> None:
        with self.server.answering(self.connection) as is_free:
            if not is_free:
                self.close_connection = True
                self.answer(HTTPStatus.SERVICE_UNAVAILABLE, b"", {"Retry-After": "1"})
            elif self.command == "OPTIONS":
                self.answer(HTTPStatus.NO_CONTENT, None, {"Allow": "GET, HEAD, OPTIONS"})
            else:
                self._get()

    do_HEAD = do_OPTIONS = do_GET

    def _get(self) -> None:
        try:
            file = self.pages.file(unquote(urlsplit(self.path).path).lstrip("/"))
        except (site.SiteError, ValueError) as error:  # A ValueError of urlsplit.
            self.answer(HTTPStatus.NOT_FOUND, f"{error}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})
            return
        if file is None:
            self.answer(HTTPStatus.NOT_FOUND, b"not found\n", {"Content-Type": "text/plain; charset=utf-8"})
        elif file.redirect:
            self.answer(HTTPStatus.FOUND, b"", {"Location": file.redirect})
        else:
            self._send(file)

    def _send(self, file: site.File) -> None:
        is_text = file.kind.startswith(site.TEXTS)
        headers = {
            "Accept-Ranges": "bytes",
            "Cache-Control": file.cache,
            "Content-Type": f"{file.kind}; charset=utf-8" if is_text else file.kind,
            "ETag": file.tag,
            "Vary": "Accept-Encoding",
        }
        packed_tag = file.tag.removesuffix('"') + '-gzip"'  # What is packed has other bytes: no range continues it.
        length, part = len(file.body), self._range(file)
        if self.headers.get("If-None-Match") in (file.tag, packed_tag):
            self.answer(HTTPStatus.NOT_MODIFIED, None, headers)
        elif part:
            headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{length}"
            self.answer(HTTPStatus.PARTIAL_CONTENT, file.body[part.start : part.stop], headers)
        elif part is not None:
            self.answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", {"Content-Range": f"bytes */{length}"})
        elif file.packed and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.answer(HTTPStatus.OK, file.packed, headers | {"Content-Encoding": "gzip", "ETag": packed_tag})
        else:
            self.answer(HTTPStatus.OK, file.body, headers)

    def _range(self, content: site.File) -> range | None:
        """The bytes that are asked for, none where the file is shorter; None where the whole is the answer."""
        asked = RANGE.fullmatch(self.headers.get("Range", "").strip())
        if asked is None or self.command != "GET" or self.headers.get("If-Range", content.tag) != content.tag:
            return None
        first, last, length = *asked.groups(), len(content.body)
        if not first:
            return range(max(0, length - int(last)), length) if last else None
        if last and int(last) < int(first):
            return None
        return range(int(first), min(int(last) + 1, length) if last else length)
