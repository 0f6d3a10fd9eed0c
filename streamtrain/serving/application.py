"""The application a server calls: who may enter, predictions, and beside them the pages; a line and a count for each.

Predictions are answered here, past FastAPI, which takes longer for a request than a model does.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from streamtrain.log import get_logger
from streamtrain.registry import nearest
from streamtrain.serving.access_log import AccessLog
from streamtrain.serving.asgi import LOOPBACK, App, Message, Receive, Scope, Send, foreign, header
from streamtrain.serving.body import Bodies
from streamtrain.serving.config import Config
from streamtrain.serving.inferring import HEAD_LENGTH, inferred
from streamtrain.serving.predicting import predicted
from streamtrain.serving.reply import Gone, Refusal, Reply, as_json, later
from streamtrain.serving.served_model import HttpModel
from streamtrain.telemetry.serving import NO_JOB, ServingRow
from streamtrain.telemetry.tracing import Tracing, ago_ns

log = get_logger(__name__)

PREDICT, MODELS, HEALTH = "/predict/", "/v2/models/", "/v2/health/"
_THREADS = 2  # for bodies that others would wait for; a model's own work is one core's
_DISCARD_S = 5.0  # for what a client still sends when it has been refused
_TOO_SLOW_S = 0.2  # the same of one that has had its time


class Application:
    """`pages` answers what is no prediction."""

    def __init__(
        self, config: Config, models: Mapping[str, HttpModel], pages: App, row: ServingRow, access: AccessLog | None,
        tracing: Tracing | None = None,
    ) -> None:
        self._models, self._pages, self._row, self._access = models, pages, row, access
        self._tracing = tracing
        self._expected = None if config.token is None else b"Bearer " + config.token
        self._hosts = (*LOOPBACK, config.host)  # without a token
        self._bodies = Bodies(config.limits)
        self._threads = ThreadPoolExecutor(_THREADS, "predict")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begun_s = time.perf_counter()
        path: str = scope["path"]
        job, action, version = _named(path)
        try:
            self._let_in(scope, path)
            if not action:
                return await self._page(scope, receive, send, begun_s)
            reply = await self._prediction(scope, receive, job, action, version)
        except Refusal as refusal:
            reply = refusal.reply
        except Gone:
            return
        except Exception:
            log.exception("a request failed", path=path)
            reply = Reply(500, as_json({"error": "expected an answer, got an error of the server's; its log has it"}))
        await _send(reply, receive, send)
        self._say(scope, job if action else None, reply, begun_s)

    def close(self) -> None:
        """Ends its threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _let_in(self, scope: Scope, path: str) -> None:
        """Refusal with 401 without the token, or where there is none with 403 for a page of another site. Health is
        for everybody: who asks for it has no token."""
        if path.startswith(HEALTH):
            return
        if self._expected is None:
            origin = header(scope, b"origin")
            host = (header(scope, b"host") or b"").decode("latin-1")
            if why := foreign(host, None if origin is None else origin.decode("latin-1"), self._hosts):
                raise Refusal(403, why, closes=True)
            return
        if not hmac.compare_digest(header(scope, b"authorization") or b"", self._expected):
            text = "authorization: expected 'Bearer' and the server's token, got none or another"
            raise Refusal(401, text, ((b"www-authenticate", b"Bearer"),), closes=True)

    async def _prediction(self, scope: Scope, receive: Receive, job: str, action: str, version: str) -> Reply:
        model = self._models.get(job)
        if model is None:
            near = nearest(job, self._models)
            hint = f"did you mean {near}?" if near else f"served are {', '.join(self._models)}"
            raise Refusal(404, f"job {job}: expected one that is served; {hint}", closes=True)
        if scope["method"] != "POST":
            raise Refusal(405, f"expected POST, got {scope['method']}", ((b"allow", b"POST"),), closes=True)
        async with self._bodies.read(scope, receive) as body:
            scorer = model.scorer  # this one from the first row to the last
            if scorer is None:
                raise Refusal(503, f"job {job} waits for {model.waits_for}", later())
            if version and version != str(scorer.version):
                raise Refusal(404, f"job {job}: expected version {scorer.version}, which is loaded, got {version}")
            is_quick = scorer.is_quick(len(body))  # else it is longer than others should wait
            if action == "predict":
                answer = partial(predicted, scorer, body, released=not is_quick)
            else:
                answer = partial(inferred, scorer, job, body, _json_bytes(scope))
            if is_quick:
                return answer()
            return await asyncio.get_running_loop().run_in_executor(self._threads, answer)

    async def _page(self, scope: Scope, receive: Receive, send: Send, begun_s: float) -> None:
        code = 500

        async def sent(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        await self._pages(scope, receive, sent)
        self._say(scope, None, Reply(code, b""), begun_s)

    def _say(self, scope: Scope, job: str | None, reply: Reply, begun_s: float) -> None:
        """`job`: of a prediction, as the client had it."""
        seconds = time.perf_counter() - begun_s
        known = job if job is not None and job in self._models else NO_JOB
        if job is not None:
            self._row.answered(known, reply.code, reply.rows, reply.errors, seconds)
            if self._tracing is not None:
                self._trace(self._tracing, scope, known, reply, seconds)
        if self._access is not None:
            client = scope.get("client")
            self._access.say(scope["method"], scope["path"], client[0] if client else "", known, reply, seconds)


    def _trace(self, tracing: Tracing, scope: Scope, job: str, reply: Reply, seconds: float) -> None:
        """A span of a prediction, in its client's trace."""
        sent = {name: header(scope, name.encode()) for name in ("traceparent", "tracestate")}
        carrier = {name: value.decode("latin-1") for name, value in sent.items() if value is not None}
        attributes = {
            "http.request.method": scope["method"],
            "http.response.status_code": reply.code,
            "streamtrain.job": job,
            "streamtrain.version": reply.version,
            "streamtrain.rows": reply.rows,
            "streamtrain.errors": reply.errors,
        }
        error = f"status {reply.code}" if reply.code >= 500 else ""
        tracing.request(f"predict {job}".rstrip(), carrier, *ago_ns(seconds), attributes, error)


def _named(path: str) -> tuple[str, str, str]:
    """(job, predict or infer, version or nothing) of a prediction's path; no action: it is another's."""
    if path.startswith(PREDICT):
        return path[len(PREDICT) :], "predict", ""
    if path.startswith(MODELS) and path.endswith("/infer"):
        parts = path[len(MODELS) :].split("/")
        if len(parts) == 2:
            return parts[0], "infer", ""
        if len(parts) == 4 and parts[1] == "versions":
            return parts[0], "infer", parts[2]
    return "", "", ""


def _json_bytes(scope: Scope) -> int | None:
    """Returns how many bytes of a body are JSON; None: all."""
    length = header(scope, HEAD_LENGTH)
    if length is not None and not length.isdigit():
        raise Refusal(400, f"{HEAD_LENGTH.decode()}: expected a number, got {length.decode('latin-1')}")
    return None if length is None else int(length)


async def _send(reply: Reply, receive: Receive, send: Send) -> None:
    length = str(len(reply.body)).encode()
    headers = [(b"content-type", reply.kind), (b"content-length", length), *reply.headers]
    if reply.closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": reply.code, "headers": headers})
    if reply.closes:
        await send({"type": "http.response.body", "body": reply.body, "more_body": True})
        await _discard(receive, _TOO_SLOW_S if reply.code == 408 else _DISCARD_S)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    else:
        await send({"type": "http.response.body", "body": reply.body})


async def _discard(receive: Receive, seconds: float) -> None:
    """Reads for a moment what the client still sends: to close before that would take the answer from it."""
    try:
        async with asyncio.timeout(seconds):
            while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
                pass
    except TimeoutError:
        pass
