"""The demo's page: `streamtrain ui` as a child, and the wait in which one goes on looking at it."""

from __future__ import annotations

import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from streamtrain.demo.child import Child
from streamtrain.demo.folder import Folder
from streamtrain.errors import StreamtrainError

PORT = 9000  # another that is free, where it is taken
METRICS_PORT = 9400
_UP_S = 60.0
_LOOK_S = 0.5


class Page(NamedTuple):
    child: Child
    url: str


@contextmanager
def page(
    folder: Folder, bootstrap: str, environment: Mapping[str, str], metrics: Iterable[int] = ()
) -> Iterator[Page]:
    """It is up. `metrics`: ports of this machine where the demo's processes will serve theirs. Raises what its child
    ended of."""
    arguments = ["ui", str(folder.job_file), "--bootstrap", bootstrap, "--port", str(PORT if _is_free(PORT) else 0)]
    arguments += [part for port in metrics for part in ("--metrics", f"http://127.0.0.1:{port}")]
    with Child(arguments, folder.log("ui"), environment) as child:
        yield Page(child, _address(child))


def _address(child: Child) -> str:
    for _ in range(int(_UP_S / _LOOK_S)):
        child.check()
        try:
            event = child.events.get(timeout=_LOOK_S)
        except queue.Empty:
            continue
        if event["event"] == "serving":
            return str(event["url"])
    raise StreamtrainError(f"streamtrain ui: expected it to be up within {_UP_S:.0f} s; its log:\n{child.log_tail()}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def metrics_ports() -> dict[str, int]:
    """One that is free for each of the demo's commands, from METRICS_PORT on: below those of outgoing connections."""
    found = filter(_is_free, range(METRICS_PORT, METRICS_PORT + 1000))
    return {"train": next(found), "predict": next(found)}


def stay(*checks: Callable[[], None]) -> None:
    """Until Ctrl-C or SIGTERM; the `checks` are called now and then and may raise what makes it useless to go on."""
    asked = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in numbers}
    try:
        while not asked.wait(_LOOK_S):
            for check in checks:
                check()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
