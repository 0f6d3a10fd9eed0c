"""Asks a schema registry for the schemas that records name: by an id of the registry's, or by a GUID.

A name never means another: each is asked for once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

from streamtrain import _native
from streamtrain.columns import formats
from streamtrain.errors import KafkaUnreachable, UserMistake
from streamtrain.log import Reminder, get_logger
from streamtrain.topics.named_schemas import is_id

log = get_logger(__name__)

Answer = tuple[str, str]  # a schema's text, or "" and why there is none
Ask = Callable[[str], Answer | None]
T = TypeVar("T")
_OURS = {"timeout": 2, "max.retries": 0, "cache.latest.ttl.sec": 0.001}  # we ask again ourselves
_AGAIN_S = 0.5
_SHARE = 4  # of the time that a question took: so long at least no other is asked
_SAY_S = 60.0
_PATIENCE_S = 120.0  # of a start or a writer with a registry that does not answer
_MOST_REFERENCES = 256  # of one schema, all told
_MOST_KNOWN = 4096  # which may be asked for again and are the same
_MOST_REFUSED = 65_536
_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403  # of Confluent's API
_NOT_FOUND = 404  # of HTTP


_NOT_IN_LOG = ("", "its round log does not tell this schema")


class Answers:
    """The registry's answer for each name. The first answer counts, so that a round is trained with one.

    Several threads may use it.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, Answer] = OrderedDict()
        self._refused: OrderedDict[str, Answer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> Answer | None:
        return self._known.get(name) or self._refused.get(name)

    def put(self, name: str, answer: Answer) -> Answer:
        """Returns the answer that counts: this one, or an earlier one from another thread."""
        with self._lock:
            if (before := self.get(name)) is not None:
                return before
            group, most = (self._refused, _MOST_REFUSED) if answer[1] else (self._known, _MOST_KNOWN)
            group[name] = answer
            if len(group) > most:
                group.popitem(last=False)
            return answer


class SchemaRegistry:
    """One registry, of one topic's records of a format. One thread at a time."""

    def __init__(self, properties: Mapping[str, Any], topic: str, format: str, answers: Answers | None = None) -> None:
        self._properties, self.subject = dict(properties), f"{topic}-value"
        self._format_name, self._format = format, formats.record_format(format)
        self._answers = Answers() if answers is None else answers
        self._client: Any = None
        self._reminder = Reminder(_SAY_S)
        self._ask_at = 0.0  # no sooner, while a request is not answered
        self._problem = ""  # why the last request was not answered
        self._open: set[str] = set()  # names that were asked for and are not known yet
        self._came = False  # one of them has, since ask_again()

    def ask(self, name: str) -> Answer | None:
        """The answer, or None where the registry gives none now.

        One that gives none is asked twice a second, less often where it takes long: what is known goes on meanwhile.
        """
        if (known := self._answers.get(name)) is not None:
            self._is_known(name)
            return known
        self._open.add(name)
        began = time.monotonic()
        if self._problem and began < self._ask_at:
            return None
        self._problem = ""
        answer = self._request(name)
        if answer is None:
            ended = time.monotonic()
            self._ask_at = ended + max(_AGAIN_S, _SHARE * (ended - began))
            self._say(name)
            return None
        self._is_known(name)
        return self._answers.put(name, answer)

    def _is_known(self, name: str) -> None:
        self._came |= name in self._open
        self._open.discard(name)

    def ask_again(self) -> bool:
        """Returns True if a name that was unknown at the last call is known now. Asks for each unknown name."""
        for name in sorted(self._open):
            self.ask(name)
        came, self._came = self._came, False
        return came

    def wait(self, name: str) -> Answer:
        """The answer, however long it takes."""
        while (answer := self.ask(name)) is None:
            time.sleep(_AGAIN_S)
        return answer

    def _say(self, name: str) -> None:
        if self._reminder.due():
            log.warning(f"schema {name} is not known yet, so its records wait: {self._problem}")

    def _request(self, name: str) -> Answer | None:
        others: dict[tuple[str, int], str] = {}
        client = self._get_client()
        try:
            found = client.get_schema(int(name)) if is_id(name) else client.get_schema_by_guid(name)
            if (kind := found.schema_type or "AVRO") != self._format.REGISTRY_TYPE:
                expected = self._format.REGISTRY_TYPE
                return "", f"expected a schema of type {expected}, got {kind}{self._newest(name)}"
            if not self._gather(found, others):
                return "", f"it refers to more than {_MOST_REFERENCES} schemas of the registry"
        except UserMistake:
            raise
        except Exception as error:  # whatever the client's HTTP library raises
            if getattr(error, "error_code", None) in (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA):
                return "", f"the registry knows no such schema{self._newest(name)}"
            self._problem = f"{type(error).__name__}: {str(error)[:200]}"
            if not is_id(name) and getattr(error, "http_status_code", None) == _NOT_FOUND:
                self._problem = f"the registry knows no GUIDs, as Confluent Platform 8's does: {self._problem}"
            return None
        try:
            text = self._format.registry_reading(found.schema_str, tuple(others.values()))
        except ValueError as error:
            return "", str(error)
        if len(text.encode()) > _native.SCHEMA_TEXT_LIMIT:
            return "", f"a schema of more than {_native.SCHEMA_TEXT_LIMIT:,} bytes"
        return text, ""

    def _gather(self, found: Any, others: dict[tuple[str, int], str]) -> bool:
        """Adds the schemas that one refers to, by subject and version, each behind those that it refers to itself.

        False where they are too many.
        """
        for reference in found.references or () if formats.needs_schema(self._format_name) else ():
            key = reference.subject, reference.version
            if key in others:
                continue
            others[key] = ""
            other = self._get_client().get_version(*key, True).schema
            if len(others) > _MOST_REFERENCES or not self._gather(other, others):
                return False
            del others[key]  # behind its own
            others[key] = str(other.schema_str)
        return True

    def _newest(self, name: str) -> str:
        """Returns the end of an error: the newest schema of the subject, which records should name instead.

        Returns "" if the registry reports none.
        """
        try:
            newest = self._newest_version()
        except KafkaUnreachable:
            return ""
        if newest is None:
            return ""
        identifier = newest.schema_id if is_id(name) or newest.guid is None else newest.guid
        return f"; the newest of {self.subject} is {identifier}"

    def newest(self) -> int | None:
        """The id of the topic's newest schema, None where it has none. KafkaUnreachable where no answer comes."""
        found = self._newest_version()
        return None if found is None else int(found.schema_id)

    def _newest_version(self) -> Any:
        try:
            return self._get_client().get_latest_version(self.subject)
        except UserMistake:
            raise
        except Exception as error:  # whatever the client's HTTP library raises
            if getattr(error, "error_code", None) in (_NO_SUBJECT, _NO_VERSION):
                return None
            raise KafkaUnreachable(f"the registry does not answer: {type(error).__name__}: {error}") from None

    def newest_text(self, patience_s: float) -> tuple[str, str]:
        """The format of the topic's newest schema, and the schema as the registry holds it.

        UserMistake where there is none of a format, KafkaUnreachable where the registry does not answer.
        """
        newest = self._patiently(self._newest_version, patience_s)
        if newest is None:
            raise UserMistake(f"{self.subject}: expected a subject of the registry, found none of this name")
        kind = newest.schema.schema_type or "AVRO"
        types = {name: getattr(formats.record_format(name), "REGISTRY_TYPE", "") for name in formats.format_names()}
        if (name := next((name for name, each in types.items() if each == kind), None)) is None:
            known = ", ".join(filter(None, types.values()))
            raise UserMistake(f"{self.subject}: expected a schema of type {known}, got {kind}")
        return name, str(newest.schema.schema_str)

    def newest_schema(self, patience_s: float) -> str:
        """Returns the text of the topic's newest schema. Waits at most `patience_s` seconds for each answer.

        Raises UserMistake if there is none that can be read, KafkaUnreachable if the registry does not answer.
        """
        newest = self._patiently(self.newest, patience_s)
        if newest is None:
            of_file = formats.options(self._format_name)["schema"].takes()
            takes = f"{of_file}, or a schema of {self.subject} in the registry"
            raise UserMistake(f"records.schema: expected {takes}, got none")

        def answer() -> Answer:
            if (found := self.ask(str(newest))) is None:
                raise KafkaUnreachable(f"the registry does not answer: {self._problem}")
            return found

        text, why_not = self._patiently(answer, patience_s)
        if why_not:
            raise UserMistake(f"records.schema: the newest of {self.subject} is {newest}: {why_not}")
        return text

    def register(self, schema: str) -> int:
        """The id of a schema that is written under the topic's subject from now on, new or not.

        UserMistake where the registry refuses it, KafkaUnreachable where it does not answer for two minutes.
        """
        written = self._format.registry_text(schema)
        return self._patiently(lambda: self._registered(written), _PATIENCE_S)

    def _registered(self, written: str) -> int:
        client = self._get_client()
        from confluent_kafka.schema_registry import Schema

        try:
            return int(client.register_schema(self.subject, Schema(written, self._format.REGISTRY_TYPE)))
        except Exception as error:  # whatever the client's HTTP library raises
            refused = 400 <= getattr(error, "http_status_code", 0) < 500
            text = f"{self.subject}: the registry does not take the schema: {error}"
            raise (UserMistake(text) if refused else KafkaUnreachable(text)) from None

    def _patiently(self, call: Callable[[], T], patience_s: float) -> T:
        """Returns the result of `call`. Retries for `patience_s` seconds while the registry does not answer.

        Logs that at once and then once a minute. Raises KafkaUnreachable after the time is up.
        """
        until_s = time.monotonic() + patience_s
        while True:
            try:
                return call()
            except KafkaUnreachable as error:
                if time.monotonic() >= until_s:
                    raise KafkaUnreachable(f"{error}; waited for {patience_s:.0f} s") from None
                if self._reminder.due():
                    log.warning(f"waiting for the registry: {error}")
                time.sleep(_AGAIN_S)

    def _get_client(self) -> Any:
        if self._client is None:
            try:
                from confluent_kafka.schema_registry import SchemaRegistryClient
            except ModuleNotFoundError:
                raise UserMistake(
                    "[registry] needs the registry's client: pip install 'streamtrain[registry]'"
                ) from None
            try:
                self._client = SchemaRegistryClient({**_OURS, **self._properties})
            except (ValueError, TypeError) as error:
                raise UserMistake(f"[registry]: {error}") from None
        return self._client


def decoded_by(format: Mapping[str, Any], ask: Ask | None) -> dict[str, Any]:
    """A format as decoders take it: where records name their schemas, with whom to ask."""
    return {**format, "schemas": ask} if is_framed(format) and ask is not None else dict(format)


def is_framed(format: Mapping[str, Any]) -> bool:
    """Returns True if records name the schemas that they were written with."""
    return format.get("frame") == "registry"


class Registered(Protocol):
    """A job, as far as its records' schemas go."""

    @property
    def records(self) -> Any: ...
    @property
    def registry(self) -> Any: ...
    def topic(self, key: str) -> Any: ...
    def with_schema(self, schema: str) -> Self: ...


J = TypeVar("J", bound=Registered)


def registry_of(job: Registered, topic: str = "records") -> SchemaRegistry | None:
    """Returns the job's schema registry for the records of a topic; None if the job has none."""
    if not job.registry:
        return None
    properties = tuple(sorted(job.registry.properties.items()))
    return _shared(properties, str(job.topic(topic).name), job.records.format)


@lru_cache(16)
def _shared(properties: tuple[tuple[str, Any], ...], topic: str, format: str) -> SchemaRegistry:
    """One of a process: what it knows is asked for once."""
    return SchemaRegistry(dict(properties), topic, format)


def lookup_in(schemas: Mapping[str, Answer]) -> Ask:
    """Returns a function that answers with the schemas in a round log."""
    return lambda name: schemas.get(name, _NOT_IN_LOG)


def with_schema(job: J, patience_s: float | None = None) -> J:
    """A job that knows by what schema its records are read: where its file does not say, the registry's newest of the
    records topic, waited for for so long, else two minutes. UserMistake where there is none, or its columns cannot be
    read by it; KafkaUnreachable where the registry does not answer.
    """
    if not formats.lacks_schema(job.records.named):
        return job
    registry = registry_of(job)
    assert registry is not None
    return job.with_schema(registry.newest_schema(_PATIENCE_S if patience_s is None else patience_s))


def named_format(job: Registered) -> dict[str, Any]:
    """A job's format as terms have it."""
    format: dict[str, Any] = with_schema(job).records.named
    return format


def job_format(job: Registered, topic: str = "records") -> dict[str, Any]:
    """A job's format as decoders take it; schemas that are not known are waited for."""
    registry = registry_of(job, topic)
    return decoded_by(named_format(job), registry.wait if registry is not None else None)


def bare_format(job: Registered) -> dict[str, Any]:
    """A job's format without a frame: of records that never meet a registry."""
    return without_frame(named_format(job))


def without_frame(format: Mapping[str, Any]) -> dict[str, Any]:
    return {**format, "frame": "none"} if is_framed(format) else dict(format)


def written_format(job: Registered, topic: str) -> dict[str, Any]:
    """A job's format as encoders take it: its schema is registered for the topic, if it is not yet.

    UserMistake for framed records without one.
    """
    format = named_format(job)
    registry = registry_of(job, topic)
    if registry is None or not is_framed(format):
        return format
    if not format["schema"]:
        takes = formats.options(format["name"])["schema"].takes()
        raise UserMistake(
            f"records.schema: expected {takes}, which records with a registry's frame are written under, got none"
        )
    return {**format, "schema_id": registry.register(str(format["schema"]))}
