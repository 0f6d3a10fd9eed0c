"""After a crash: takes a single node's partitions from its dead broker, before that starts again.

Back within its session the broker would believe that it still leads, and begin to finish the transactions it finds.
When the session then ends, Kafka 4.3 forgets those ends it has not written yet, as if their topics had been deleted:
readers of committed records wait for ever, or are shown what was aborted.
"""

from __future__ import annotations

import time
from pathlib import Path

from streamtrain.broker.process import Process

FENCED = "Fencing broker"  # what the controller logs then
WRITTEN_S = 0.3  # from that line until what it says is in the controller's log
FENCE_TIMEOUT_S = 30.0  # then it is left: the broker starts as Kafka has it
STOP_TIMEOUT_S = 5.0
POLL_S = 0.02
FENCING_LOGGER = """\
logger.fencing.name = org.apache.kafka.controller.ReplicationControlManager
logger.fencing.level = INFO
"""


def crashed(log: Path) -> bool:
    """Whether the last broker on this log folder ended without saying so."""
    return (log / "meta.properties").exists() and not (log / ".kafka_cleanshutdown").exists()


def controller_alone(properties: dict[str, str]) -> dict[str, str]:
    """The properties of the node's controller without its broker, whose session is over at once."""
    kept = {name: value for name, value in properties.items() if not name.startswith(("advertised.", "inter.broker."))}
    (listener,) = [text for text in properties["listeners"].split(",") if text.startswith("CONTROLLER:")]
    alone = {"process.roles": "controller", "listeners": listener}
    return {**kept, **alone, "broker.session.timeout.ms": "100", "broker.heartbeat.interval.ms": "50"}


def wait_until_fenced(controller: Process, output: Path) -> None:
    """Ends the controller when it has fenced the broker, or does not come to it."""
    until = time.monotonic() + FENCE_TIMEOUT_S
    while controller.alive() and time.monotonic() < until and FENCED not in output.read_text(errors="replace"):
        time.sleep(POLL_S)
    time.sleep(WRITTEN_S)
    controller.terminate()  # not kill: what it has decided is written
    if not controller.wait(STOP_TIMEOUT_S):
        controller.kill()
