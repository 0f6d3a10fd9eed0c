"""A second of sound at 16 kHz: its energies by bands against NumPy's, and FLACs and WAVs decoded into slots on all
cores against soundfile alone on one.

Prints one JSON line per figure: clips a second of the clock, and of the process's CPU time, which a busy machine does
not falsify: there the bar is what one thread gives, less a tenth.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's product on one core
sys.path.insert(0, str(Path(__file__).parents[1] / "fakes"))

import msgpack
import numpy as np
from slots import RowSlot

from streamtrain import _native
from streamtrain.columns import media, sounds
from streamtrain.columns.schema import Schema
from streamtrain.columns.sounds import SoundForm

FIGURES = 6  # lines of a whole run
SMOKE = ["--seconds", "1"]
BAR, KERNEL_BAR = 0.9, 4  # for each thread
COUNT, ROWS, RATE = 256, 64, 16_000
FORM = SoundForm(RATE, RATE, 64, 400, 160)
CLIP = {"kind": "audio", "rate": RATE, "seconds": 1.0, "features": {"mel": 64, "window": 400, "step": 160}}
SCHEMA = Schema.from_columns({"clip": CLIP, "late": {"role": "label"}}, "binary_cross_entropy")


def per_second(call: Callable[[], int], seconds: float) -> tuple[float, float]:
    """The best of five windows, by the clock and by CPU time."""
    call()
    best = [0.0, 0.0]
    for _ in range(5):
        done, clock, cpu = 0, time.perf_counter(), time.process_time()
        while (spent := time.perf_counter() - clock) < seconds / 5:
            done += call()
        best = [max(best[0], done / spent), max(best[1], done / (time.process_time() - cpu))]
    return best[0], best[1]


def numpy_log_mel(waves: list[Any]) -> Callable[[], int]:
    """As one writes it: frames, a real transform, a product with the bands."""
    points, bands = 512, FORM.bands
    weights = np.zeros((points // 2 + 1, FORM.mel), np.float32)
    begin = 0
    for band, (first, end) in enumerate(zip(bands.first, bands.ends, strict=True)):
        weights[first : first + end - begin, band] = bands.weights[begin:end]
        begin = int(end)

    def call() -> int:
        for wave in waves:
            frames = np.lib.stride_tricks.sliding_window_view(wave, FORM.window)[:: FORM.step] * bands.taper
            power = np.abs(np.fft.rfft(frames, points)) ** 2
            np.log(np.maximum(power.astype(np.float32) @ weights, sounds.FLOOR))
        return len(waves)

    return call


def kernel(waves: list[Any]) -> int:
    for wave in waves:
        sounds.features(wave, FORM)
    return len(waves)


def alone(raws: list[bytes]) -> int:
    import soundfile

    for raw in raws:
        soundfile.read(io.BytesIO(raw), dtype="float32")
    return len(raws)


def ours(records: list[bytes]) -> Callable[[], int]:
    filler = _native.BatchFiller("msgpack", RowSlot(SCHEMA, ROWS).plan)

    def call() -> int:
        told = filler.count(records)
        assert told.trained == COUNT
        return told.trained

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    seconds = parser.parse_args().seconds / FIGURES
    if importlib.util.find_spec("soundfile") is None:
        return print(json.dumps({"skipped": "needs soundfile (extra audio)"}))
    from sounds import flac, tone, wav

    waves = [tone(RATE, 300 + 10 * seed, 0.05, seed, RATE) for seed in range(COUNT)]
    some, threads = waves[:32], media.threads()
    found, rival = per_second(lambda: kernel(some), seconds), per_second(numpy_log_mel(some), seconds)
    figures = [("log-mel alone, one thread", found, rival, (KERNEL_BAR, KERNEL_BAR))]
    for name, encode in (("FLAC", flac), ("WAV", wav)):
        raws = [encode(wave, RATE) for wave in waves]
        records = [msgpack.packb({"clip": raw, "late": at % 2}) for at, raw in enumerate(raws)]
        found, rival = per_second(ours(records), seconds), per_second(partial(alone, raws), seconds)
        figures.append((f"{name} to log-mel", found, rival, (BAR * threads, BAR)))
    for name, found, rival, bars in figures:
        for at, unit in enumerate(("clock", "CPU")):
            told = {
                "bench": f"{name}, by {unit} time", "ours": round(found[at]), "rival": round(rival[at]),
                "ratio": round(found[at] / rival[at], 2), "bar": round(bars[at], 2), "threads": threads,
                "us_a_clip": round(1e6 / found[at], 1), "unit": "clips/s",
            }  # fmt: skip
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
