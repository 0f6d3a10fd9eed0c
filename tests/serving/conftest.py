"""Scorers of small models, as a server has them."""

from __future__ import annotations

from typing import Any

from publisher import example_manifest
from small_model import SmallModel

from streamtrain.columns.served import Served
from streamtrain.serving.served_model import HttpScorer


def scorer_of(model: SmallModel, most: int = 1 << 20, **changes: Any) -> HttpScorer:
    manifest = example_manifest(3, model_spec=model.spec, schema=model.schema.to_dict(), **changes)
    return HttpScorer(Served.of(manifest, b"d" * 32, model.payload(3)), most)


SCORER = scorer_of(SmallModel.make())
