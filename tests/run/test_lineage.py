"""What a lineage begins with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from streamtrain.run.lineage import imported_lineage
from streamtrain.topics.manifest import Imported, Positions, decode

GOLDEN = Path(__file__).parents[1] / "golden" / "manifest.v4.msgpack"


def test_an_import_counts_early_stopping_anew() -> None:
    """The best so far lies elsewhere."""
    found = replace(decode(GOLDEN.read_bytes()), metrics={"total": {"rows": 7}, "early_stopping": {"best_version": 3}})
    of = Imported("other", found.version, b"0" * 32, found.lineage, "far", "keep")
    made = imported_lineage(found, of, Positions("topic", ()), ())
    assert made.metrics == {"total": {"rows": 7}} and made.version == found.version
