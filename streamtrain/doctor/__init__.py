"""The registry of what `streamtrain doctor` looks at: a file is one thing, with HELP, ORDER and look(kafka), which
gives findings; `kafka` are the settings of a Kafka to ask, None where there is none.
"""

from __future__ import annotations

from streamtrain.registry import Registry

REGISTRY = Registry(__name__, "look")
