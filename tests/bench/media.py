"""Pictures and sounds decoded into slots on all cores, against the libraries alone on one: by the clock, and by CPU
time, where the bar is what one thread gives, less a tenth."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

from streamtrain.columns import media, sounds
from streamtrain.columns.schema import Schema
from streamtrain.columns.sounds import SoundForm
from tests.bench.decode import decoder, each_of
from tests.bench.harness import Line, Run, Sides, bench, rates

BAR, KERNEL_BAR = 0.9, 4  # for each thread
THREADS = media.threads()
PICTURES, CLIPS, RATE = 1024, 256, 16_000
FORM = SoundForm(RATE, RATE, 64, 400, 160)
PHOTO = {"kind": "image", "size": [32, 32]}
CLIP = {"kind": "audio", "rate": RATE, "seconds": 1.0, "features": {"mel": 64, "window": 400, "step": 160}}
BOTH = rates(clock=time.perf_counter, cpu=time.process_time)


def lines_of(name: str, rival: str, bar: float = BAR, threads: int = THREADS) -> list[Line]:
    return [
        Line(f"{name}, by clock time", f"{name}:clock", f"{rival}:clock", round(bar * threads, 2)),
        Line(f"{name}, by CPU time", f"{name}:cpu", f"{rival}:cpu", bar),
    ]


def into_slots(column: dict[str, Any], records: list[bytes], count: int, slot_rows: int) -> Callable[[], int]:
    schema = Schema.from_columns({"content": column, "late": {"role": "label"}}, "binary_cross_entropy")
    return decoder("msgpack", schema, records, count, slot_rows)


@bench(
    "images", [*lines_of("a picture a record", "cv2.imdecode"), *lines_of("64 pictures a record", "cv2.imdecode")],
    BOTH, "pictures/s", needs=("cv2",), seconds=15.0,
)  # fmt: skip
def images(run: Run) -> Sides:
    """JPEGs of 32 x 32 into slots on all cores, against cv2.imdecode alone on one."""
    import cv2
    from pictures import labelled

    raws = [raw for raw, _ in labelled(PICTURES)]
    rows = [{"content": raw, "late": at % 2} for at, raw in enumerate(raws)]
    packed = [msgpack.packb(rows[at : at + 64]) for at in range(0, PICTURES, 64)]
    return {
        "a picture a record": into_slots(PHOTO, [msgpack.packb(row) for row in rows], PICTURES, 256),
        "64 pictures a record": into_slots(PHOTO, packed, PICTURES, 256),
        "cv2.imdecode": each_of(raws, lambda raw: cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR)),
    }


def numpy_log_mel() -> Callable[[Any], object]:
    """The usual code for it: frames, a real transform, a product with the bands."""
    points, bands = 512, FORM.bands
    weights = np.zeros((points // 2 + 1, FORM.mel), np.float32)
    begin = 0
    for band, (first, end) in enumerate(zip(bands.first, bands.ends, strict=True)):
        weights[first : first + end - begin, band] = bands.weights[begin:end]
        begin = int(end)

    def log_mel(wave: Any) -> object:
        frames = np.lib.stride_tricks.sliding_window_view(wave, FORM.window)[:: FORM.step] * bands.taper
        power = np.abs(np.fft.rfft(frames, points)) ** 2
        return np.log(np.maximum(power.astype(np.float32) @ weights, sounds.FLOOR))

    return log_mel


@bench(
    "audio",
    {
        ("",): lines_of("log-mel alone, one thread", "NumPy", KERNEL_BAR, 1),   # with nothing else in memory
        ("FLAC",): lines_of("FLAC to log-mel", "soundfile, FLAC"),
        ("WAV",): lines_of("WAV to log-mel", "soundfile, WAV"),
    },
    BOTH, "clips/s", needs=("soundfile",), seconds=30.0,
)  # fmt: skip
def audio(run: Run, form: str) -> Sides:
    """A second of sound at 16 kHz: log-mel against NumPy, and FLAC and WAV into slots against soundfile alone on one
    core."""
    import soundfile
    from sounds import flac, tone, wav

    waves = [tone(RATE, 300 + 10 * seed, 0.05, seed, RATE) for seed in range(CLIPS if form else 32)]
    if not form:
        kernel = each_of(waves, lambda wave: sounds.features(wave, FORM))
        return {"log-mel alone, one thread": kernel, "NumPy": each_of(waves, numpy_log_mel())}
    raws = [(flac if form == "FLAC" else wav)(wave, RATE) for wave in waves]
    records = [msgpack.packb({"content": raw, "late": at % 2}) for at, raw in enumerate(raws)]
    return {
        f"{form} to log-mel": into_slots(CLIP, records, CLIPS, 64),
        f"soundfile, {form}": each_of(raws, lambda raw: soundfile.read(io.BytesIO(raw), dtype="float32")),
    }
