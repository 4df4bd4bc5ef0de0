"""The hub stand-in of ../shared/tools/hub.py, run inside the test process.

Running in this process lets a test turn its faults on and off and take it down and up again at
the same address; huggingface_hub reads its address once, when it is imported.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

SHARED = (Path(__file__).parents[2] / "../shared").resolve()
HUB_DATA = SHARED / "data/hub"
ABSENT = f"needs the shared folder beside the repository ({SHARED.name}/data/hub), which is absent"


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Server(ThreadingHTTPServer):
    """Knows its open connections: a client's kept-alive connection would outlive `shutdown`."""

    daemon_threads = True

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection, then serve it in a thread."""
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        self.connections.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        """Cut every open connection."""
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class HubStandIn:
    """Serves ../shared/data/hub on a loopback port.

    Args:
        port: where; the clients' HF_ENDPOINT names it.
        cache: the clients' HF_HOME.
    """

    def __init__(self, port: int, cache: Path) -> None:
        self.port = port
        self.cache = cache
        self._module: ModuleType = _hub_module()
        self._module.Hub.root = HUB_DATA
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve, in a thread."""
        self._server = _Server(self.port, self._module.Hub)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.drop_connections()
            self._server.server_close()
            self._server = None

    @contextmanager
    def down(self) -> Iterator[None]:
        """The hub is down inside the block."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextmanager
    def faulty(self, *, fail_first: int = 0, truncate: bool = False) -> Iterator[None]:
        """Answer the first downloads with 503, or cut every download in half, inside the block."""
        hub = self._module.Hub
        hub.fail_first, hub.truncate = fail_first, truncate
        try:
            yield
        finally:
            hub.fail_first, hub.truncate = 0, False

    @property
    def failures_left(self) -> int:
        """How many downloads will still be answered with 503."""
        return int(self._module.Hub.fail_first)

    def mend(self) -> None:
        """End the faults at once."""
        self._module.Hub.fail_first, self._module.Hub.truncate = 0, False

    def forget(self, dataset: str) -> None:
        """Remove a data set from the clients' caches, so that it must be downloaded."""
        for folder in (
            self.cache / "hub" / f"datasets--{dataset.replace('/', '--')}",
            self.cache / "datasets" / dataset.replace("/", "___"),
        ):
            shutil.rmtree(folder, ignore_errors=True)


def _hub_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("shared_hub", SHARED / "tools/hub.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(SHARED / "tools/hub.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
