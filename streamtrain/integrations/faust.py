"""Ties a LiveModel to a Faust application: follows from before its agents start until after they have stopped.

Needs the extra `faust`. For scoring at the edges, at `concurrency=1`; training never goes through here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import faust
import mode

from streamtrain.clients.live_model import LiveModel
from streamtrain.errors import UserMistake


class FaustLiveModel(mode.Service):
    """A LiveModel that starts and stops with its application. Made by live_model()."""

    def __init__(self, app: faust.App, job: str, bootstrap: str | None, kafka: Mapping[str, object] | None) -> None:
        super().__init__()
        self._app = app
        self._job = job
        self._bootstrap = bootstrap
        self._kafka = kafka
        self._model: LiveModel | None = None

    def predict(self, rows: Any) -> Any:
        """Predicts as LiveModel.predict, fast enough for an agent's coroutine; best with a `stream.take()` list."""
        return self._started_model().predict(rows)

    async def wait_ready(self, timeout_s: float = 30) -> None:
        """Returns when a trained snapshot is loaded; raises what hindered it. The event loop goes on meanwhile."""
        await asyncio.to_thread(self._started_model().wait_ready, timeout_s)

    @property
    def ready(self) -> bool:
        return self._model is not None and self._model.ready

    @property
    def version(self) -> int | None:
        return None if self._model is None else self._model.version

    @property
    def digest(self) -> str | None:
        return None if self._model is None else self._model.digest

    @property
    def age_s(self) -> float | None:
        return None if self._model is None else self._model.age_s

    async def on_start(self) -> None:
        self._model = LiveModel(self._job, self._bootstrap or bootstrap_of(self._app), self._kafka)

    async def on_shutdown(self) -> None:
        if self._model is not None:
            await asyncio.to_thread(self._model.close)

    def _started_model(self) -> LiveModel:
        if self._model is None:
            raise UserMistake(
                f"live_model(app, {self._job!r}): expected a started application, got one that is not; "
                "use it in agents, timers and tasks"
            )
        return self._model


def live_model(
    app: faust.App, job: str, bootstrap: str | None = None, kafka: Mapping[str, object] | None = None
) -> FaustLiveModel:
    """A model of job `job` for the agents of `app`; call it where the application is defined.

    Without `bootstrap` the application's own brokers are asked. `kafka` holds librdkafka properties, where security is
    set too: Faust's own settings are not taken over.
    """
    service = FaustLiveModel(app, job, bootstrap, kafka)
    app.add_dependency(service)  # before the application's own services: starts first, stops last
    return service


def bootstrap_of(app: faust.App) -> str:
    """The application's own brokers as a bootstrap address."""
    return ",".join(f"{url.host}:{url.port or 9092}" for url in app.conf.broker)
