"""`pywebgpu serve`: the pages of web/ on this machine, where a small GPT trains and Python can be edited and run."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from pywebgpu import site

PORT = 8765
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
    parser = argparse.ArgumentParser(prog="pywebgpu serve", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT, help=f"the port of this machine ({PORT}); 0 takes a free one")
    parser.add_argument("--cdn", action="store_true", help="load Pyodide and the page's libraries from the network")
    options = parser.parse_args(arguments)
    try:
        server = start(options.port, site.Site(site.find_folders(cdn=options.cdn)))
    except (site.SiteError, OSError, OverflowError) as error:
        print(f"pywebgpu serve: {error}", file=sys.stderr)
        return 2
    with server:
        print(f"{address(server)}  (Ctrl-C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def start(port: int, pages: site.Site) -> ThreadingHTTPServer:
    """A server that listens; its serve_forever answers. Raises OSError for a port that is taken."""
    return Server(("127.0.0.1", port), partial(Handler, pages))


def address(server: ThreadingHTTPServer) -> str:
    """The page's address: by this name, because only that, or https, may use WebGPU."""
    return f"http://localhost:{server.server_address[1]}/"


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A page that goes away while it loads is nothing to tell."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD; connections stay open."""

    protocol_version = "HTTP/1.1"

    def __init__(self, pages: site.Site, *rest: object) -> None:
        self.pages = pages
        super().__init__(*rest)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        try:
            found = self.pages.file(unquote(urlsplit(self.path).path).lstrip("/"))
        except (site.SiteError, ValueError) as error:
            self._answer(HTTPStatus.NOT_FOUND, f"{error}\n".encode(), {"Content-Type": "text/plain; charset=utf-8"})
            return
        if found is None:
            self._answer(HTTPStatus.NOT_FOUND, b"not found\n", {"Content-Type": "text/plain; charset=utf-8"})
        elif found.redirect:
            self._answer(HTTPStatus.FOUND, b"", {"Location": found.redirect})
        else:
            self._send(found)

    do_HEAD = do_GET

    def _send(self, found: site.File) -> None:
        headers = {"Cache-Control": found.cache, "ETag": found.tag, "Vary": "Accept-Encoding"}
        if self.headers.get("If-None-Match") == found.tag:
            self._answer(HTTPStatus.NOT_MODIFIED, None, headers)
            return
        body = found.body
        if found.packed and "gzip" in self.headers.get("Accept-Encoding", ""):
            body, headers["Content-Encoding"] = found.packed, "gzip"
        is_text = found.kind.startswith(site.TEXTS)
        headers["Content-Type"] = f"{found.kind}; charset=utf-8" if is_text else found.kind
        self._answer(HTTPStatus.OK, body, headers)

    def _answer(self, status: HTTPStatus, body: bytes | None, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (HEADERS | headers).items():
            self.send_header(name, value)
        if body is not None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body and self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the page itself says what is missing."""
