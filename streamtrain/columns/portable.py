"""A snapshot as a safetensors file whose metadata says all that is needed to predict with it, without our code."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from streamtrain.columns.column import Column
from streamtrain.columns.kinds.category import hash_seed
from streamtrain.columns.kinds.kind import Settings
from streamtrain.columns.schema import Schema
from streamtrain.columns.served import schema_and_model
from streamtrain.columns.sounds import FLOOR
from streamtrain.compute import losses, snapshot
from streamtrain.compute.model import Model
from streamtrain.compute.moments import MOMENTS
from streamtrain.topics.manifest import Manifest

_HASH = (
    "bucket = hash(UTF-8 text, seed = hash_seed) mod buckets; of hash_bits 32 it is MurmurHash3_x86_32, of 64 "
    "the first 64 bits of MurmurHash3_x64_128; hash_seed is MurmurHash3_x86_32 of the column's name with seed 0; a "
    "whole number is hashed as its decimal text, a boolean as true or false; with vw_bits a name is hashed as Vowpal "
    "Wabbit hashes it in the first of namespaces, of which the lowest vw_bits bits are the index"
)
_TEXT = (
    "of a text small letters stand for capitals (Unicode's simple mapping) where lower_case says so; by word its "
    "tokens are the longest runs of letters, marks and numbers (general categories L, M, N), by char its code points; "
    "an entry is so many tokens in a row as ngrams says, with a space between words; at each token the shorter first"
)
_PICTURES = (
    "a picture is its points from the top left, of each red, green and blue (of 1 channel grey), each byte / 255 - 0.5;"
    " one of another size is brought to height and width by the mean of the area that each point covers, rounded"
)
_SOUNDS = (
    "a clip of sound is the mean of its channels, full scale from -1 to 1, `samples` of them, zeros behind a "
    "shorter one; with mel it is its frames one after the other, each of window samples times 0.5 - 0.5 cos(2 pi i "
    "/ window), step samples from one to the next, of each the natural logarithm of the energy in every band, at "
    "least floor: the sum over the bins of the discrete Fourier transform, zeros up to a power of two, of the "
    "squared magnitude times the band's triangle, which is 1 where its neighbours reach 0, at frequencies evenly "
    "apart on the scale 2595 log10(1 + f / 700) from 0 to half the rate"
)
_NAMED = ("label.classes", "label.total", "standardize.label")  # blocks that a loss's PREDICTION names
_STANDARDIZED = (
    "(value - mean) / deviation, cut at -clip and clip unless clip is 0; deviation = sqrt(squares / count), 1 where "
    "that is below floor or below |mean| / 2^52; where count is 0 the value as it is; 0 of a missing value where "
    "the column says that missing is mean"
)


def safetensors_file(manifest: Manifest, digest: bytes, model: bytes) -> bytes:
    """`model` is the snapshot's payload. SnapshotError where the manifest does not say what it is."""
    return snapshot.with_metadata(model, metadata(manifest, digest))


def metadata(manifest: Manifest, digest: bytes) -> dict[str, str]:
    """By name; what is not text is JSON."""
    schema, model = schema_and_model(manifest)
    parts: dict[str, Any] = {
        "inputs": list(_inputs(schema, model)),
        "layers": list(_layers(model)),
        "transforms": [{"name": name, **table} for name, table in schema.transforms],
        **_describe_heads(schema, model),
        "statistics": {block.name: MOMENTS for block in model.blocks if block.rule == "moments"},
    }
    texts = {
        "job": manifest.job,
        "version": str(manifest.version),
        "digest": digest.hex(),
        "untrained": json.dumps(manifest.untrained),
        "rows_seen": str(manifest.rows_seen),
        "created_ms": str(manifest.created_ms),
        "standardized": _STANDARDIZED,
        "hash": _HASH,
        "text": _TEXT,
        "pictures": _PICTURES,
        "sounds": _SOUNDS,
    }
    if not schema.head_losses:
        texts |= {"loss": schema.loss, "prediction": losses.get(schema.loss).PREDICTION}
    return {**texts, **{name: json.dumps(part, ensure_ascii=False) for name, part in parts.items()}}


def _describe_heads(schema: Schema, model: Model) -> dict[str, Any]:
    """Returns what the model predicts.

    Each of several heads has the layer whose outputs it takes, and the names of its blocks that `prediction` names.
    """
    if not schema.head_losses:
        return {"classes": schema.class_names, "loss_settings": model.parsed.heads[0].settings}
    blocks = {block.name for block in model.blocks}
    names = {vertex.name for vertex in model.whole_graph()}
    heads = []
    for head in model.parsed.heads:
        named = {name: head.named(name) for name in _NAMED if head.named(name) in blocks}
        output = head.outlet.output_layer if head.outlet.output_layer in names else head.outlet.taken
        settings = {"loss": head.loss, "loss_settings": head.settings, "classes": dict(schema.labels)[head.name].names}
        prediction = losses.get(head.loss).PREDICTION
        heads.append({"name": head.name, "output": output, **settings, "prediction": prediction, "blocks": named})
    return {"heads": heads}


def _inputs(schema: Schema, model: Model) -> Iterator[dict[str, Any]]:
    """The columns in the order they stand in the input matrix: numbers, one column each, then embeddings. `path`:
    where a row holds them; `from`: of the message around the record. Bags whose `embed` is 0 are no part of it: they
    are added to the outputs. Last what transforms with state make, of `state`: of them streamtrain alone says how."""
    columns, shape = dict(schema.every), model.parsed.input
    for row, name in enumerate(schema.numbers):
        moments = {"moments_row": row} if shape.standardize[row] else {}
        yield {**_where(name, columns[name]), "kind": "number", "missing": columns[name].missing, **moments}
    for category in shape.categories:
        yield {
            **_where(category.name, columns[category.name]),
            "kind": "category",
            "missing": columns[category.name].missing,
            "buckets": category.buckets,
            "hash_bits": columns[category.name].hash_bits,
            "hash_seed": hash_seed(category.name),
            "table": f"{category.name}.embedding",
        }
    yield from _clips(schema)
    row = 0
    for name, column in schema.of_kind("vector"):
        moments = {"moments_row": row} if column.standardize else {}
        yield {**_where(name, column), "kind": "vector", "missing": column.missing, "size": column.size, **moments}
        row += column.size
    for bag in shape.bags:
        column = columns[bag.name]
        own = column.entry.options.model_fields.keys() - Settings.model_fields.keys()
        yield {
            **{name: getattr(column, name) for name in sorted(own)},
            **_where(bag.name, column),
            "kind": column.kind,
            "missing": column.missing,
            "hash_seed": hash_seed(bag.name),
            "table": f"{bag.name}.embedding",
            "embed": bag.embed,
            "pool": bag.pool,
            "most": bag.most,
        }
    yield from _pictures(schema)
    for spec in shape.stateful:
        blocks = [block.name for block in model.blocks if block.name.split(".")[:2] == [spec.transform, spec.name]]
        transform = {"transform": spec.transform, "buckets": spec.buckets, "settings": dict(spec.settings)}
        table = {"embed": spec.embed, "table": f"{spec.name}.embedding"} if spec.embed else {}
        yield {**_where(spec.name, columns[spec.name]), "kind": "number", **transform, **table, "state": blocks}


def _clips(schema: Schema) -> Iterator[dict[str, Any]]:
    """Yields the audio columns. The mean and variance of a standardized one are a statistic of its own."""
    for name, column in schema.of_kind("audio"):
        form = dataclasses.asdict(column.sound) | ({"floor": FLOOR} if column.features else {})
        (block,) = column.entry.places(name, column)
        moments = {"moments": f"standardize.{block}", "moments_row": 0} if column.standardize else {}
        yield {**_where(name, column), "kind": "audio", "missing": column.missing, **form, **moments}


def _pictures(schema: Schema) -> Iterator[dict[str, Any]]:
    """Behind all else in the input matrix."""
    for name, column in schema.of_kind("image"):
        height, width, channels = column.shape
        form = {"height": height, "width": width, "channels": channels}
        yield {**_where(name, column), "kind": "image", "missing": column.missing, **form}


def _where(name: str, column: Column) -> dict[str, Any]:
    place = {"name": name, "path": column.path, "from": column.around}
    return {key: value for key, value in place.items() if value is not None}


def _layers(model: Model) -> Iterator[dict[str, Any]]:
    """One after the other: the layer's kind, its settings, and its tensors ("weight": "dense0.weight"); of a graph also
    its name and what it reads."""
    if model.parsed.module is not None:
        kept = (*model.parsed.module.parameters, *model.parsed.module.averages)
        yield {"layer": "torch", "module": model.parsed.module.name, **{each.name: each.block for each in kept}}
        return
    for vertex in model.whole_graph():
        tensors = [block.name for block in model.blocks if block.name.startswith(f"{vertex.like or vertex.name}.")]
        is_chain = model.parsed.graph is None and len(model.parsed.heads) == 1
        reads = {} if is_chain else {"name": vertex.name, "reads": list(vertex.reads)}
        named = {tensor.removeprefix(f"{vertex.like or vertex.name}."): tensor for tensor in tensors}
        options = {name: value for name, value in vertex.options.items() if name != "zero"}
        yield {"layer": vertex.kind, **reads, **options, **named}
