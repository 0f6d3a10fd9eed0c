"""Who turns rows into slots does so through a BatchFiller: nobody else decodes, has a sink or clears behind rows."""

from __future__ import annotations

import re

BY_HAND = re.compile(r"\bmake_decoder\(|\bclear_behind\(|\bRowSink\s+\w+\s*[{=;]|\bRowSink\s*\{")


def test_only_the_batch_filler_turns_rows_into_slots(root, tracked):
    native = [name for name in tracked if name.startswith("native/") and not name.startswith("native/decode/")]
    assert len(native) > 50
    assert [name for name in native if BY_HAND.search((root / name).read_text())] == []
