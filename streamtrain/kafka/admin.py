"""Topics of a job: make them, describe them, their ids and offsets. Every call ends within its time-out.

Never changes or deletes a topic that is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, NewTopic, OffsetSpec, ResourceType

from streamtrain import _native
from streamtrain._native import KafkaResponse
from streamtrain.errors import KafkaSettling, KafkaUnreachable, StreamtrainError, UserMistake
from streamtrain.kafka.error_codes import Heard, explain, no_such_topic, response_to
from streamtrain.kafka.renewing import Renewing
from streamtrain.kafka.settings import Purpose, client_settings
from streamtrain.topics.topic import BROKER_DEFAULT, TopicWish, same_cleanup

TIMEOUT_S = 8.0  # of one call, so that a start without a broker says so within 10 s
SETTLING_S = 0.05  # a topic just made, or whose leader moves, answers after a few of these
_ELECTION = 3  # times a call's time-out, in which a cluster that answers has found another node for what one had
_NO_TOPIC = "?"  # no topic may be called so: nobody's, and never made by being asked for
_LISTEN_S = 1.0  # how long a wrong password may go unheard while the topics are asked for
# why a controller would not make a topic, which it says only after it has looked for one of that name
_CREATION_ERRORS = (
    KafkaError.POLICY_VIOLATION, KafkaError.THROTTLING_QUOTA_EXCEEDED, KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_CONFIG,
)  # fmt: skip
_OffsetSpec: Any = OffsetSpec  # its methods have no types
T = TypeVar("T")


@dataclass(frozen=True)
class TopicState:
    """A topic as it is; `config` holds what was set on the topic itself, the last two what holds for it."""

    name: str
    topic_id: str
    partitions: int
    replication: int
    config: Mapping[str, str]
    cleanup_policy: str
    min_insync_replicas: int | None  # None: this Kafka does not say

    @property
    def compacted(self) -> bool:
        """Kafka may remove a record once another with its key follows."""
        return "compact" in self.cleanup_policy


@dataclass(frozen=True)
class TopicChange:
    """A change `ensure` made or would make: action is created, exists, or would create; `differences` as text."""

    wish: TopicWish
    action: str
    differences: tuple[str, ...] = ()


class TopicEnds(NamedTuple):
    topic_id: str
    ends: list[int]  # by partition


def _open(settings: Mapping[str, Any], heard: Heard) -> AdminClient:
    """Returns a client that ends when it is dropped, for it is in no circle. Else a collection of garbage may end it in
    its own thread, which sets an answer that nobody waits for after a Ctrl-C: there librdkafka aborts."""
    own: dict[str, Any] = {**settings, "error_cb": heard}
    try:
        return AdminClient(own, logger=heard)
    except KafkaException as error:
        raise UserMistake(f"[kafka] {error.args[0].str()}") from None


class Admin:
    """One administration client; made without a connection, so the first call is what raises KafkaUnreachable."""

    def __init__(self, bootstrap: str, kafka: Mapping[str, object] | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self.bootstrap = bootstrap
        self.timeout_s = timeout_s
        settings = client_settings(Purpose.ADMIN, kafka or {}, {"bootstrap.servers": bootstrap})
        self._heard = Heard(settings)
        self._clients = Renewing(partial(_open, settings, self._heard))

    def _ask(self, what: str, question: Callable[[AdminClient], T]) -> T:
        """Returns a client's answer; raises our errors for Kafka's."""

        def request(client: AdminClient) -> T:
            try:
                return question(client)
            except KafkaException as error:
                raise self._explained(client, error.args[0], what) from None
            except TimeoutError:
                raise self._explained(client, KafkaError(KafkaError._TIMED_OUT), what) from None

        answer = self._clients.ask(request)
        self._heard.clear()
        return answer

    def _explained(self, client: AdminClient, error: KafkaError, what: str) -> StreamtrainError:
        client.poll(0)  # hears what came beside the answers
        return explain(error.code(), error.str(), what, self.bootstrap, self._heard)

    def names(self) -> set[str]:
        """Every topic of the cluster: a large answer where there are thousands."""
        return set(self._metadata().topics)

    def broker_count(self) -> int:
        """Returns how many brokers there are now; the cheapest way to learn whether one answers.

        A question without any topic ends the process where a broker has just been fenced: librdkafka 2.16 asserts that
        DescribeCluster's answer names a broker.
        """
        return len(self._metadata(_NO_TOPIC).brokers)

    def cluster_id(self) -> str:
        """Returns the id of this Kafka cluster. All its brokers share it; no other cluster has it."""
        return str(self._metadata(_NO_TOPIC).cluster_id)

    def _metadata(self, topic: str | None = None) -> ClusterMetadata:
        """Returns what any broker knows of a topic, or of all topics if None, and of the brokers."""
        until = time.monotonic() + self.timeout_s

        def question(client: AdminClient) -> ClusterMetadata:
            while True:
                left_s = until - time.monotonic()
                try:
                    return client.list_topics(topic, max(0.1, min(left_s, _LISTEN_S)))
                except KafkaException as error:
                    is_last = left_s <= _LISTEN_S
                    if is_last or not isinstance(self._explained(client, error.args[0], "topics"), KafkaUnreachable):
                        raise

        return self._ask("topics", question)

    def absent(self, name: str) -> bool | None:
        """Returns True if there is no such topic, else False; None if this user may not ask the controller.

        Only the controller knows. Any other broker's view of the topic may be out of date.
        """
        new = [NewTopic(name, 1)]

        def question(client: AdminClient) -> bool | None:
            future = client.create_topics(new, validate_only=True, request_timeout=self.timeout_s)[name]
            try:
                future.result(self.timeout_s + 1)
                return True
            except KafkaException as error:
                if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return False
                if error.args[0].code() in _CREATION_ERRORS:
                    return True
                if response_to(error.args[0].code()) is KafkaResponse.DENIED:
                    return None
                raise

        return self._ask(f"topic {name}", question)

    def describe(self, names: Sequence[str]) -> dict[str, TopicState | None]:
        """The state of each topic, None where there is none."""
        self.broker_count()  # describe_topics alone waits longer when no broker answers
        until = time.monotonic() + _ELECTION * self.timeout_s
        states: dict[str, TopicState | None] = {}
        while missing := [name for name in names if name not in states]:
            try:
                found, unknown = self._described(missing)
            except KafkaUnreachable:  # the node that is asked, by preference the controller, may be the one that died
                if time.monotonic() > until:
                    raise
                self.names()
                continue
            states |= found
            for name, error in unknown.items():
                if self.absent(name):
                    states[name] = None
                elif time.monotonic() > until:
                    raise explain(error.code(), error.str(), f"topic {name}", self.bootstrap, self._heard)
            if unknown:
                time.sleep(SETTLING_S)
        return {name: states[name] for name in names}

    def _described(self, names: Sequence[str]) -> tuple[dict[str, TopicState], dict[str, KafkaError]]:
        """The states of the topics the broker knows, and why it gave none of the others."""
        descriptions, unknown = self._descriptions(names)
        configs = self._configs(list(descriptions))
        return {name: _state(found, configs[name]) for name, found in descriptions.items()}, unknown

    def _descriptions(self, names: Sequence[str]) -> tuple[dict[str, Any], dict[str, KafkaError]]:
        descriptions: dict[str, Any] = {}
        unknown: dict[str, KafkaError] = {}

        def question(client: AdminClient) -> None:
            futures = client.describe_topics(TopicCollection(list(names)), request_timeout=self.timeout_s)
            for name, future in futures.items():
                try:
                    descriptions[name] = future.result(self.timeout_s + 1)
                except KafkaException as error:
                    if response_to(error.args[0].code()) is not KafkaResponse.MISSING:
                        raise
                    unknown[name] = error.args[0]

        self._ask(f"topics {', '.join(names)}", question)
        return descriptions, unknown

    def _configs(self, names: list[str]) -> dict[str, dict[str, Any]]:
        if not names:
            return {}
        resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}

        def question(client: AdminClient) -> dict[str, dict[str, Any]]:
            futures = client.describe_configs(list(resources.values()), request_timeout=self.timeout_s)
            return {name: futures[resource].result(self.timeout_s + 1) for name, resource in resources.items()}

        return self._ask(f"topics {', '.join(names)}", question)

    def ensure(self, wishes: Iterable[TopicWish], dry_run: bool = False) -> list[TopicChange]:
        """Makes what is missing and compares the rest; safe to call again, also from several programs at once.

        Raises UserMistake where a topic that is there cannot serve: another cleanup policy of a topic that is ours,
        another number of partitions where it is fixed. With `dry_run` nothing is made.
        """
        wishes = list(wishes)
        states = self.describe([wish.name for wish in wishes])
        mistakes = [text for wish in wishes for text in _mistakes(wish, states[wish.name], self.bootstrap)]
        if mistakes:
            raise UserMistake("; ".join(mistakes))
        missing = [wish for wish in wishes if states[wish.name] is None]
        if missing and not dry_run:
            self._create(missing)
        action = "would create" if dry_run else "created"
        return [
            TopicChange(wish, action) if state is None else TopicChange(wish, "exists", _differences(wish, state))
            for wish, state in ((wish, states[wish.name]) for wish in wishes)
        ]

    def _create(self, wishes: Sequence[TopicWish]) -> None:
        new = [NewTopic(wish.name, wish.partitions, wish.replication, config=dict(wish.config)) for wish in wishes]

        def question(client: AdminClient) -> None:
            futures = client.create_topics(new, operation_timeout=self.timeout_s, request_timeout=self.timeout_s)
            for future in futures.values():
                try:
                    future.result(self.timeout_s + 1)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise

        self._ask(f"topics {', '.join(wish.name for wish in wishes)}", question)
        for wish in wishes:  # made is not yet known to every broker; this waits until each partition has its leader
            self.last_stable(wish.name, wish.partitions)

    def topic_ids(self, names: Sequence[str]) -> dict[str, str | None]:
        """Each topic's id in base64; a topic deleted and made again has another. None where there is no topic.

        One small question, for each publication asks it: the names of all topics take 40 ms where there are 3,000.
        """
        found, unknown = self._descriptions(names)
        states = self.describe(list(unknown)) if unknown else {}
        ids = {name: str(description.topic_id) for name, description in found.items()}
        return ids | {name: None if state is None else state.topic_id for name, state in states.items()}

    def earliest(self, name: str, partitions: int) -> list[int]:
        """The first offset still there, per partition."""
        return self._offsets(name, partitions, _OffsetSpec.earliest())

    def last_stable(self, name: str, partitions: int) -> list[int]:
        """Returns where a read_committed reader ends now, per partition: no open transaction lies before it."""
        return self._offsets(name, partitions, _OffsetSpec.latest())

    def high_watermarks(self, name: str, partitions: int) -> list[int]:
        """One past the last offset, open transactions included, per partition."""
        return self._offsets(name, partitions, _OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)

    def behind_open_transaction(self, name: str, partitions: int) -> list[int]:
        """Offsets from the first open transaction to the end, per partition: no read_committed reader sees them yet."""
        ends = self.high_watermarks(name, partitions)  # asked first: what comes in between is not counted
        return [max(0, end - at) for end, at in zip(ends, self.last_stable(name, partitions), strict=True)]

    def spans(self, name: str) -> list[tuple[int, int]] | None:
        """(first offset, where a read_committed reader ends) of each partition as it is now; None: no such topic."""
        state = self.describe([name])[name]
        if state is None:
            return None
        return list(zip(self.earliest(name, state.partitions), self.last_stable(name, state.partitions), strict=True))

    def ends(self, names: Sequence[str]) -> dict[str, TopicEnds | None]:
        """Returns where a read_committed reader ends in each topic as it is now; None if there is no such topic.

        Sends two small requests, whatever the number of topics, for callers that poll.
        """
        found, unknown = self._descriptions(names)
        states = self.describe(list(unknown)) if unknown else {}
        known = {name: (str(one.topic_id), len(one.partitions)) for name, one in found.items()}
        known |= {name: (state.topic_id, state.partitions) for name, state in states.items() if state is not None}
        specs = {
            TopicPartition(name, at): _OffsetSpec.latest() for name, (_, count) in known.items() for at in range(count)
        }  # fmt: skip

        try:
            offsets = self._ask(f"topics {', '.join(known)}", partial(self._listed, specs)) if specs else {}
        except KafkaSettling:  # one of them: each is waited for by itself
            offsets = {(name, at): end for name, (_, count) in known.items()
                       for at, end in enumerate(self.last_stable(name, count))}  # fmt: skip
        by_name = {
            name: TopicEnds(topic_id, [offsets[name, at] for at in range(count)])
            for name, (topic_id, count) in known.items()
        }  # fmt: skip
        return {name: by_name.get(name) for name in names}

    def delete_records(self, name: str, partition: int, below: int) -> None:
        """Has the brokers delete what lies below that offset of a partition."""

        def question(client: AdminClient) -> None:
            place = TopicPartition(name, partition, below)
            client.delete_records([place], request_timeout=self.timeout_s)[place].result(self.timeout_s)

        self._ask(f"records of {name}", question)

    def at_time(self, name: str, partitions: int, timestamp_ms: int) -> list[int]:
        """The first offset whose record is not older than `timestamp_ms`, per partition; the end where none is."""
        found = self._offsets(name, partitions, _OffsetSpec.for_timestamp(timestamp_ms))
        ends = self.last_stable(name, partitions)
        return [end if offset < 0 else offset for offset, end in zip(found, ends, strict=True)]

    def _listed(
        self, specs: dict[TopicPartition, Any], client: AdminClient,
        isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[tuple[str, int], int]:
        """The offsets of topics and partitions."""
        futures = client.list_offsets(specs, isolation_level=isolation, request_timeout=self.timeout_s)
        return {(at.topic, at.partition): each.result(self.timeout_s + 1).offset for at, each in futures.items()}

    def _offsets(
        self, name: str, partitions: int, spec: Any, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> list[int]:
        specs = {TopicPartition(name, partition): spec for partition in range(partitions)}
        begun = time.monotonic()
        while True:
            try:
                found = self._ask(f"topic {name}", partial(self._listed, specs, isolation=isolation))
                return [found[name, partition] for partition in range(partitions)]
            except KafkaSettling:
                if self.absent(name):
                    raise no_such_topic(name, self.bootstrap) from None
                waited_s = time.monotonic() - begun
                if waited_s > self.timeout_s:
                    raise
                time.sleep(SETTLING_S)
                if waited_s > _LISTEN_S:  # no new topic's any more: the client asks the leaders it has heard of last
                    self._metadata()


def _state(description: Any, entries: dict[str, Any]) -> TopicState:
    in_sync = entries.get("min.insync.replicas")
    on_topic = {name: entry.value for name, entry in entries.items() if entry.source == 1}  # DYNAMIC_TOPIC_CONFIG
    return TopicState(
        name=description.name,
        topic_id=str(description.topic_id),
        partitions=len(description.partitions),
        replication=len(description.partitions[0].replicas),
        config=on_topic,
        cleanup_policy=entries["cleanup.policy"].value,
        min_insync_replicas=None if in_sync is None else int(in_sync.value),
    )


def _mistakes(wish: TopicWish, state: TopicState | None, bootstrap: str) -> list[str]:
    if state is None:
        return []
    texts = []
    if state.partitions > _native.MAX_PARTITIONS:
        texts.append(f"topic {wish.name}: expected at most {_native.MAX_PARTITIONS} partitions, got {state.partitions}")
    policy = wish.config.get("cleanup.policy")
    if wish.owned and policy is not None and not same_cleanup(policy, state.cleanup_policy):
        texts.append(
            f"topic {wish.name}: expected cleanup.policy={policy}, got {state.cleanup_policy}; to set it, which loses "
            f"nothing: kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics "
            f"--entity-name {wish.name} --add-config cleanup.policy={policy}"
        )
    if wish.fixed_partitions and state.partitions != wish.partitions:
        texts.append(
            f"topic {wish.name}: expected {wish.partitions} partition, got {state.partitions}, and Kafka takes none "
            "away; stop the trainer, delete the topic and make it again with 'streamtrain topics create'. "
            f"That loses {wish.loses}"
        )
    return texts


def _differences(wish: TopicWish, state: TopicState) -> tuple[str, ...]:
    texts = []
    if state.partitions != wish.partitions:
        texts.append(f"partitions: expected {wish.partitions}, got {state.partitions}")
    if wish.replication not in (BROKER_DEFAULT, state.replication):
        texts.append(f"replication: expected {wish.replication}, got {state.replication}")
    if wish.owned:
        current = {"cleanup.policy": state.cleanup_policy, **state.config}
        texts += [
            f"{name}: expected {value}, got {current.get(name, 'the default')}"
            for name, value in wish.config.items()
            if current.get(name) != value
        ]
    return tuple(texts)
