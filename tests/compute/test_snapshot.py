"""State ⇄ safetensors: golden bytes, the format as the library reads it, checked loading, any bytes answered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from looped import over
from safetensors.numpy import load as library_load
from safetensors.numpy import save as library_save

from streamtrain import _native
from streamtrain.compute import snapshot
from streamtrain.compute.state import Layout, views
from streamtrain.errors import SnapshotError

GOLDEN = Path(__file__).parents[1] / "golden"


def layout(*, width: int = 3, optimizer: str = "learned") -> _native.StateLayout:
    return _native.StateLayout.make([_native.StateBlockSpec(*block) for block in (
        ("dense0.weight", "parameters", "learned", (4, width)),
        ("dense0.bias", "parameters", "learned", (width,)),
        ("adam.m.dense0.weight", "optimizer", optimizer, (4, width)),
        ("standardize.moments", "statistics", "moments", (2, 3)),
        ("score.loss", "score", "sum", (4,)),
        ("score.hits", "score", "sum", (2,), "i64"),
        ("optimizer.steps", "optimizer", "highest", (1,)),
    )])  # fmt: skip


def state(of: Layout, seed: int = 0) -> np.ndarray:
    raw = np.zeros(of.state_bytes, np.uint8)
    rng = np.random.default_rng(seed)
    for view in views(of, raw).values():
        view[...] = rng.integers(-1000, 1000, view.shape) / (8 if view.dtype.kind == "f" else 1)
    return raw


def test_golden_bytes() -> None:
    assert snapshot.model_payload(layout(), state(layout())) == (GOLDEN / "model.v1.safetensors").read_bytes()
    assert snapshot.trainer_payload(layout(), state(layout())) == (GOLDEN / "trainer.v1.safetensors").read_bytes()


def test_the_library_reads_what_we_write_and_we_what_it_writes() -> None:
    arrays = views(layout(), state(layout()))
    payload = snapshot.encode(arrays)
    for loaded in (library_load(payload), snapshot.decode(payload), snapshot.decode(library_save(dict(arrays)))):
        assert loaded.keys() == arrays.keys()
        assert all(
            loaded[name].dtype == array.dtype and np.array_equal(loaded[name], array) for name, array in arrays.items()
        )


def test_both_payloads_give_the_state_back() -> None:
    source, target = state(layout(), 1), state(layout(), 2)
    snapshot.load(
        layout(), target, snapshot.model_payload(layout(), source), snapshot.trainer_payload(layout(), source)
    )
    assert np.array_equal(target, source)


def test_a_follower_loads_the_model_alone() -> None:
    source, target = state(layout(), 1), state(layout(), 2)
    snapshot.load(layout(), target, snapshot.model_payload(layout(), source))
    loaded, former, expected = (views(layout(), raw) for raw in (target, state(layout(), 2), source))
    for block in layout().blocks:
        other = expected if block.group in snapshot.MODEL_GROUPS else former
        assert np.array_equal(loaded[block.name], other[block.name])


def test_state_that_is_not_averaged_is_kept_once_per_worker() -> None:
    whole = layout(optimizer="local")
    of = whole.published(3)
    source, target = state(of, 1), np.zeros(of.state_bytes, np.uint8)
    model, trainer = snapshot.model_payload(of, source), snapshot.trainer_payload(of, source)
    names = {name: array.shape for name, array in snapshot.decode(trainer).items() if name.startswith("adam")}
    assert names == {f"adam.m.dense0.weight@{worker}": (1, 4, 3) for worker in range(3)}
    snapshot.load(of, target, model, trainer)
    for name, view in views(of, target).items():
        assert np.array_equal(view, views(of, source)[name])
    fewer = whole.published(2)
    with pytest.raises(SnapshotError, match=r"dense0\.weight@2: unknown to the model"):
        snapshot.load(fewer, state(fewer), model, trainer)


def test_a_difference_is_named_and_nothing_is_copied() -> None:
    target = state(layout(width=5), 2)
    before = target.copy()
    with pytest.raises(SnapshotError, match=r"dense0.weight: expected F32\[4, 5\], got F32\[4, 3\]") as caught:
        snapshot.load(layout(width=5), target, snapshot.model_payload(layout(), state(layout())))
    assert "--fresh" in str(caught.value) and np.array_equal(target, before)
    with pytest.raises(SnapshotError, match=r"score.loss: expected F64\[4\], got nothing.*extra: unknown"):
        trainer = {"extra": np.zeros(1), "adam.m.dense0.weight": np.zeros((4, 3))}
        model = snapshot.model_payload(layout(), state(layout()))
        snapshot.load(layout(), state(layout()), model, snapshot.encode(trainer))


@over(
    "header",
    [
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}',
        '{"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}}',
        '{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}',
        '{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}',
        '{"a":{"dtype":"F32","shape":[true,2],"data_offsets":[0,8]}}',
        '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
        '{"a":{"dtype":"I64","shape":[1099511627775,1099511627775],"data_offsets":[0,8]}}',
        '{"a":7}', "[]", "{", "[" * 100_000,
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(header: str) -> None:
    with pytest.raises(SnapshotError, match="safetensors"):
        snapshot.decode(len(header).to_bytes(8, "little") + header.encode() + b"\0" * 8)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_bytes_are_answered(data: st.DataObject) -> None:
    value = bytearray(snapshot.model_payload(layout(), state(layout())))
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, 300))] = data.draw(st.integers(0, 255))
    for raw in (bytes(value), bytes(value[: data.draw(st.integers(0, len(value)))]), data.draw(st.binary(max_size=50))):
        try:
            snapshot.load(layout(), state(layout()), raw)
        except SnapshotError as error:
            assert str(error)
