"""Scorers of small models, as a server has them."""

from __future__ import annotations

from publisher import example_manifest
from small_model import SmallModel

from streamtrain.columns.served import Served
from streamtrain.serving.model import HttpScorer


def scorer_of(model: SmallModel, most: int = 1 << 20) -> HttpScorer:
    manifest = example_manifest(3, model_spec=model.spec, schema=model.schema.to_dict())
    return HttpScorer(Served.of(manifest, b"d" * 32, model.payload(3)), most)


SCORER = scorer_of(SmallModel.make())
