"""A clip of sound, as the bytes of a WAV or a FLAC: float32 in the slot, its samples or its energies by bands."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from streamtrain import _native
from streamtrain.columns import sounds
from streamtrain.columns.kinds.bags import block_name
from streamtrain.columns.kinds.kind import Named
from streamtrain.columns.kinds.media import Media, MediaKind, Row
from streamtrain.columns.kinds.standardize import Standardizable
from streamtrain.columns.media import DecodePart
from streamtrain.columns.sounds import SoundForm

HELP = "a WAV or a FLAC, as bytes or in base64: its samples or, with features, its energies in bands of the mel scale"
MISPLACED: dict[str, Any] = {"misplaced": "only a feature of kind audio has one"}
MOST_RATE, MOST_SECONDS, MOST_SAMPLES = 384_000, 86_400, 1 << 24
WINDOW_S, STEP_S = 0.025, 0.010  # usual for speech: HTK, Kaldi
LEAST_WINDOW = 16


class Features(BaseModel):
    """Energies of frames that overlap, by bands."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    mel: int = Field(64, ge=1, le=1024, description="bands of the mel scale, from 0 to half the rate")
    window: int | None = Field(None, ge=LEAST_WINDOW, le=1 << 16, description="samples of a frame; default: of 25 ms")
    step: int | None = Field(None, ge=1, le=1 << 16, description="samples from a frame to the next; default: of 10 ms")


class Options(Standardizable, Media):
    """The settings of an audio column."""

    rate: int | None = Field(
        None, ge=1, le=MOST_RATE, json_schema_extra=MISPLACED,
        description="audio: samples a second; a clip of another rate is a dead letter",
    )  # fmt: skip
    seconds: float | None = Field(
        None, gt=0, le=MOST_SECONDS, json_schema_extra=MISPLACED,
        description="audio: length of a clip; longer ones are cut, shorter ones padded with silence",
    )  # fmt: skip
    features: bool | Features = Field(
        False, json_schema_extra=MISPLACED,
        description="audio: log energies in bands of the mel scale, not the samples: true, or { mel, window, step }",
    )  # fmt: skip

    @property
    def sound(self) -> SoundForm:
        """Returns the SoundForm that clips become: samples, or energies if `features` is set."""
        rate, seconds = self.rate or 0, self.seconds or 0.0
        samples = round(rate * seconds)
        if self.features is False:
            return SoundForm(rate, samples)
        given = Features.model_validate({}) if self.features is True else self.features
        window = given.window or max(LEAST_WINDOW, round(rate * WINDOW_S))
        return SoundForm(rate, samples, given.mel, window, given.step or max(1, round(rate * STEP_S)))


class Audio(MediaKind[Options]):
    options = Options
    part, dtype = "audio", "f32"

    def problems(self, column: Options) -> Iterator[str]:
        if column.rate is None:
            yield "rate: expected samples a second, such as 16000, got none"
        if column.seconds is None:
            yield "seconds: expected how long clips are, such as 1.0, got none"
        if column.rate is None or column.seconds is None:
            return
        form = column.sound
        least = form.window if form.mel else 1
        if not least <= form.samples <= MOST_SAMPLES:
            yield f"seconds: expected {least} to {MOST_SAMPLES:,} samples at this rate, got {column.seconds:g} seconds"
        elif form.width > _native.MAX_COLUMNS:
            what = f"{form.frames:,} frames of {form.mel} bands" if form.mel else f"{form.samples:,} samples"
            yield f"seconds: expected at most {_native.MAX_COLUMNS:,} numbers, got {what}"
        elif form.mel and form.bands.empty:
            yield (
                f"features: expected a frequency in each of {form.mel} bands, got {form.bands.empty} without one; "
                "say fewer (mel) or a longer window"
            )

    def missing_problem(self, column: Options) -> str | None:
        value = column.missing
        if isinstance(value, int | float) and not isinstance(value, bool) and -1 <= value <= 1:
            return None
        return f'expected "dead_letter", "skip" or a number for all its samples, -1 to 1 (0 is silence), got {value!r}'

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        vectors = [
            {"block": block_name(name, self.part), "size": self.width(column), "standardize": column.standardized()}
            for name, column in columns
        ]
        return {"vectors": vectors} if vectors else {}

    def width(self, column: Options) -> int:
        return column.sound.width

    def form(self, column: Options) -> str:
        return repr(column.sound)

    def decoder(self, column: Options) -> DecodePart:
        return partial(sounds.decode, column.sound)

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        return {**super().native_options(column, loss), "rate": column.rate}

    def require(self) -> None:
        sounds.require()

    def stand_in_row(self, column: Options) -> Row:
        wave = np.full(column.sound.samples, float(column.missing), np.float32)
        return sounds.features(wave, column.sound) if column.sound.mel else wave


KIND = Audio()
