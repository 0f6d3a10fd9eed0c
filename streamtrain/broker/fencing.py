"""After a crash: takes a single node's partitions from its dead broker, before that starts again.

Back within its session the broker would believe that it still leads, and begin to finish the transactions it finds.
When the session then ends, Kafka 4.3 forgets those ends it has not written yet, as if their topics had been deleted:
readers of committed records wait for ever, or are shown what was aborted.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from streamtrain.broker.process import Process

FENCE_TIMEOUT_S = 30.0  # then it is left: the broker starts as Kafka has it
STOP_TIMEOUT_S = 5.0
POLL_S = 0.05
# Kafka's metadata/src/main/resources/common/metadata/BrokerRegistrationChangeRecord.json, as it stands in the log:
# frame 1, key 17, version, the broker's number, its epoch, how many tagged fields, of which tag 0 is `fenced`: 1 or -1
_CHANGE = rb"\x01\x11.%b.{8}[\x01-\x09]\x00\x01([\x01\xff])"


def crashed(log: Path) -> bool:
    """Returns whether the last broker on this log folder ended without a clean shutdown."""
    return (log / "meta.properties").exists() and not (log / ".kafka_cleanshutdown").exists()


def controller_alone(properties: dict[str, str]) -> dict[str, str]:
    """The properties of the node's controller without its broker, whose session is over at once."""
    kept = {name: value for name, value in properties.items() if not name.startswith(("advertised.", "inter.broker."))}
    (listener,) = [text for text in properties["listeners"].split(",") if text.startswith("CONTROLLER:")]
    alone = {"process.roles": "controller", "listeners": listener}
    return {**kept, **alone, "broker.session.timeout.ms": "100", "broker.heartbeat.interval.ms": "50"}


def fenced(log: Path, number: int) -> bool:
    """Returns whether the newest entry on the broker `number` in this folder's controller log says that it is fenced.

    The log has a change of registration after the changes of partitions that follow from it.
    """
    change = re.compile(_CHANGE % re.escape(number.to_bytes(4)), re.DOTALL)
    segments = sorted((log / "__cluster_metadata-0").glob("*.log"))
    said = [found[1] for segment in segments for found in change.finditer(segment.read_bytes())]
    return said[-1:] == [b"\x01"]


def wait_until_fenced(controller: Process, log: Path, number: int) -> None:
    """Asks the controller to end when it has written that the broker is fenced, or does not come to it."""
    until = time.monotonic() + FENCE_TIMEOUT_S
    while controller.alive() and time.monotonic() < until and not fenced(log, number):
        time.sleep(POLL_S)
    controller.terminate()
    controller.wait(STOP_TIMEOUT_S)
