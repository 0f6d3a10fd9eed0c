"""The server's pages beside predictions: health, models, metrics, and how to send requests. FastAPI's part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from streamtrain import __version__
from streamtrain.serving.asgi import App
from streamtrain.serving.inferring import inputs_of, outputs_of
from streamtrain.serving.openapi import described, page
from streamtrain.serving.reply import as_json
from streamtrain.serving.served_model import HttpModel, HttpScorer
from streamtrain.telemetry.serving import ServingTable

EXTENSIONS = ["binary_tensor_data"]


def pages(url: str, models: Mapping[str, HttpModel], table: ServingTable) -> App:
    """The application; `url`: where it is."""
    from fastapi import FastAPI

    served = _Pages(url, models, table)
    app = FastAPI(
        title="streamtrain", version=__version__, docs_url=None, redoc_url=None,
        description="Predictions of models that go on training.",
    )  # fmt: skip
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        return described(plain(), models)

    app.openapi = openapi  # type: ignore[method-assign]
    routes: dict[str, Callable[..., Any]] = {
        "/": served.index, "/metrics": served.metrics, "/v2": served.server, "/v2/health/live": served.live,
        "/v2/health/ready": served.ready, "/v2/models/{job}": served.model,
        "/v2/models/{job}/ready": served.model_ready, "/v2/models/{job}/versions/{version}": served.version,
        "/v2/models/{job}/versions/{version}/ready": served.version_ready,
    }  # fmt: skip
    for path, answer in routes.items():
        app.add_api_route(path, answer, methods=["GET"], response_model=None)
    return app


class _Pages:
    """Each method answers a path; its docstring stands in the OpenAPI document."""

    def __init__(self, url: str, models: Mapping[str, HttpModel], table: ServingTable) -> None:
        self._url, self._models, self._table = url, models, table

    def index(self) -> Any:
        """Shows what is served and how to request it."""
        return _response(200, page(self._url, self._models).encode(), "text/html; charset=utf-8")

    def metrics(self) -> Any:
        """Prometheus metrics, of all processes together."""
        return _response(200, self._table.exposition(), CONTENT_TYPE_LATEST)

    def server(self) -> Any:
        """The server's metadata."""
        return _to_reply({"name": "streamtrain", "version": __version__, "extensions": EXTENSIONS})

    def live(self) -> Any:
        """200 as long as the server answers."""
        return _to_reply({"live": True})

    def ready(self) -> Any:
        """200 when every job has a trained snapshot; else 503 with what is waited for."""
        return _readiness(self._models)

    def model(self, job: str) -> Any:
        """A model's metadata: its loaded version, inputs and outputs."""
        return self._metadata(job, None)

    def model_ready(self, job: str) -> Any:
        """200 when the job has a trained snapshot."""
        return _readiness({job: self._models[job]}) if job in self._models else _unknown(job, self._models)

    def version(self, job: str, version: str) -> Any:
        """The same of the version that is loaded; 404 for others."""
        return self._metadata(job, version)

    def version_ready(self, job: str, version: str) -> Any:
        """200 where this version is the one loaded."""
        found = self._metadata(job, version)
        return _to_reply({"ready": True}) if found.status_code == 200 else found

    def _metadata(self, job: str, version: str | None) -> Any:
        model = self._models.get(job)
        if model is None:
            return _unknown(job, self._models)
        scorer = model.scorer
        if scorer is None:
            return _to_reply({"error": f"job {job} waits for {model.waits_for}"}, 503)
        if version not in (None, str(scorer.version)):
            text = f"job {job}: expected version {scorer.version}, which is loaded, got {version}"
            return _to_reply({"error": text}, 404)
        stays = {} if model.stays_at is None else {"stays_at": model.stays_at}
        metadata = {"name": job, "platform": "streamtrain", "versions": [str(scorer.version)]}
        return _to_reply({**metadata, **stays, **_signature(scorer)})


def _signature(scorer: HttpScorer) -> dict[str, Any]:
    shape = scorer.served.shape
    return {"inputs": [*inputs_of(shape.schema)], "outputs": [*outputs_of(shape.heads)]}


def _readiness(models: Mapping[str, HttpModel]) -> Any:
    waits = {job: found for job, model in models.items() if (found := model.waits_for) is not None}
    stays = {job: model.stays_at for job, model in models.items() if model.stays_at is not None}
    more = {"stays_at": stays} if stays else {}
    return _to_reply({"ready": False, "waits_for": waits, **more}, 503) if waits else _to_reply({"ready": True, **more})


def _unknown(job: str, models: Mapping[str, HttpModel]) -> Any:
    return _to_reply({"error": f"job {job}: expected one that is served: {', '.join(models)}"}, 404)


def _to_reply(document: dict[str, Any], code: int = 200) -> Any:
    return _response(code, as_json(document), "application/json")


def _response(code: int, body: bytes, kind: str) -> Any:
    from fastapi import Response

    return Response(body, code, media_type=kind)
