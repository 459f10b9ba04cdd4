"""The server of the page."""

from __future__ import annotations

import hmac
import html
import json
import secrets
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tensorhash._types import ArrayLike
from tensorhash.view._scene import Scene

_HOST = "127.0.0.1"


def serve(
    points: ArrayLike,
    name: str = "points",
    *,
    size: float | None = None,
    port: int = 0,
    ready: Callable[[str], None] = print,
) -> None:
    """Serves the page until KeyboardInterrupt. Calls `ready` with its address.

    Only this machine can connect, and only with the token in the address. `size` is the first
    voxel size; `port` 0 picks a free one.

    >>> serve(np.random.rand(1000, 3))  # doctest: +SKIP
    """
    with make_server(Scene(points, size), name, port) as server:
        ready(server.address)
        server.serve_forever(poll_interval=0.2)


def make_server(scene: Scene, name: str, port: int = 0) -> PageServer:
    """A server that listens, but does not answer yet."""
    return PageServer(scene, name, port)


class PageServer(ThreadingHTTPServer):
    """Answers requests for the page, the points and the voxels."""

    daemon_threads = True

    def __init__(self, scene: Scene, name: str, port: int) -> None:
        super().__init__((_HOST, port), _Handler)
        self.scene = scene
        self.name = name
        self.token = secrets.token_urlsafe(24)
        self.host = f"{_HOST}:{self.server_port}"
        self.address = f"http://{self.host}/?token={self.token}"  #: what to open in a browser

    def page(self) -> tuple[str, bytes]:
        """(nonce, page). Scripts run only with the nonce, so the page cannot load others."""
        nonce = secrets.token_urlsafe(16)
        # "</script>" in a name must not end the script.
        scene = json.dumps({**self.scene.facts(), "token": self.token}).replace("<", "\\u003c")
        parts = {
            "title": html.escape(self.name),
            "nonce": nonce,
            "style": _text("page.css"),
            "scene": scene,
            "raster": _text("raster.js"),
            "app": _text("app.js"),
        }
        page = _text("page.html")
        for part, text in parts.items():
            page = page.replace("{{" + part + "}}", text)
        return nonce, page.encode()


def _text(name: str) -> str:
    return resources.files("tensorhash.view").joinpath(name).read_text(encoding="utf-8")


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"  # keeps the connection for the next move of the slider

    def do_GET(self) -> None:
        """Checks host and token, then answers."""
        url = urlsplit(self.path)
        fields = parse_qs(url.query)
        # Another host name means that a foreign page resolved its own name to this machine.
        if self.headers.get("Host") != self.server.host:
            self._refuse(403, "expected the address that tensorhash view printed")
        elif not hmac.compare_digest(
            fields.get("token", [""])[0].encode(), self.server.token.encode()
        ):
            self._refuse(403, "expected the token of the address that tensorhash view printed")
        elif url.path == "/":
            nonce, page = self.server.page()
            self._answer(page, "text/html; charset=utf-8", nonce=nonce)
        elif url.path == "/points":
            self._give(*self.server.scene.points())
        elif url.path == "/voxels":
            self._voxels(fields.get("size", [""])[0])
        else:
            self._refuse(404, "expected /, /points or /voxels")

    def _voxels(self, size: str) -> None:
        try:
            self._give(*self.server.scene.voxels(float(size)))
        except (ValueError, OverflowError, MemoryError) as error:
            self._refuse(400, str(error) or type(error).__name__)

    def _give(self, facts: dict[str, Any], content: bytes) -> None:
        self._answer(content, "application/octet-stream", facts=json.dumps(facts))

    def _refuse(self, code: int, reason: str) -> None:
        self._answer(reason.encode(), "text/plain; charset=utf-8", code)

    def _answer(
        self, content: bytes, kind: str, code: int = 200, nonce: str = "", facts: str = ""
    ) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        scripts = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        self.send_header(
            "Content-Security-Policy",
            f"default-src 'none'; {scripts if nonce else ''}connect-src 'self'; img-src data:; "
            f"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
        if facts:
            self.send_header("X-Facts", facts)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Says nothing: the page shows errors itself."""
