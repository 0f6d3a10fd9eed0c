"""What we set of librdkafka stands in native/kafka/settings.cpp alone."""

from __future__ import annotations

import re

from streamtrain import _native


def test_nobody_sets_them_elsewhere(root, tracked):
    names = {name for name, value, *_ in _native.kafka_settings() if value is not None}
    told = re.compile("|".join(f'"{re.escape(name)}"' for name in sorted(names)))
    sources = [name for name in tracked if name.startswith("streamtrain/") and name.endswith(".py")]
    assert [(name, found) for name in sources for found in told.findall((root / name).read_text())] == []
