"""WAV and FLAC, decoded by soundfile (extra `audio`), and their energies by bands: what columns/media.py asks in its
threads.

soundfile is imported when the first column of clips is made; libsndfile works without the GIL, on a file in memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import FileIO
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamtrain import _native
from streamtrain.columns.mel import Bands, bands_of
from streamtrain.compute.ops.log_mel import FRAMES_A_TURN
from streamtrain.errors import UserMistake

MOST_CHANNELS = 8
LOUDEST = 1e6  # a float sample beyond it, where 1 is full scale, is a mistake
FLOOR = 1e-10  # of a band's energy: a tone of full scale has 1e4 with 400 samples
_FLAC_HEAD, _FLAC_SAMPLES = 42, (1 << 36) - 1  # bytes up to its first block's end; bits of its samples' number
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class SoundForm:
    """The description of what clips become.

    Without `mel`: samples of the mean of all channels from the beginning on, with zeros after a shorter clip. With
    `mel`: the energies in so many bands of each frame of `window` samples instead. Frames begin `step` samples apart.
    """

    rate: int
    samples: int
    mel: int = 0
    window: int = 0
    step: int = 0

    @property
    def frames(self) -> int:
        return 1 + (self.samples - self.window) // self.step

    @property
    def width(self) -> int:
        """Numbers of a row: [frames, mel], or [samples]."""
        return self.frames * self.mel if self.mel else self.samples

    @property
    def bands(self) -> Bands:
        return bands_of(self.rate, self.window, self.mel)


@cache
def _soundfile() -> ModuleType:
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: without libsndfile
        raise UserMistake(
            "columns of kind audio need soundfile; install it with: pip install 'streamtrain[audio]'"
        ) from None
    module: ModuleType = soundfile
    return module


def require() -> None:
    """UserMistake without soundfile."""
    _soundfile()


def decode(form: SoundForm, encoded: Sequence[memoryview], rows: Floats) -> bytes:
    """Each clip into its row of float32; a byte for each: 1, or 0 where it cannot."""
    good = bytearray(len(encoded))
    for at, raw in enumerate(encoded):
        wave = opened(raw, form)
        if wave is None:
            continue
        if form.mel:
            energies(wave, form, rows[at])
        else:
            rows[at] = wave
        good[at] = 1
    return bytes(good)


_own = threading.local()


def _file_of(raw: bytes | memoryview) -> int:
    """A descriptor at the beginning of these bytes, in the thread's own file in memory."""
    file: FileIO | None = getattr(_own, "file", None)
    if file is None:
        file = _own.file = FileIO(os.memfd_create("clip"), "r+")
    file.seek(0)
    file.write(raw)
    file.truncate()  # behind them: its pages stay
    file.seek(0)
    return file.fileno()


def opened(raw: bytes | memoryview, form: SoundForm) -> Floats | None:
    """float32 [samples] of a clip, full scale from -1 to 1: the mean of its channels, cut or with zeros behind; None:
    it has none."""
    soundfile = _soundfile()
    raw = counted(raw)
    try:
        with soundfile.SoundFile(_file_of(raw), closefd=False) as file:
            count = min(file.frames, form.samples)
            if file.samplerate != form.rate or not 1 <= file.channels <= MOST_CHANNELS or count < 1:
                return None
            in_16_bits = file.subtype == "PCM_16"  # read as they are in two thirds of the time
            found = file.read(count, np.int16 if in_16_bits else np.float32, always_2d=True)
    except (soundfile.SoundFileError, MemoryError):
        return None
    if len(found) < count:  # libsndfile 1.2 raises; nobody promises that
        return None
    wave = np.zeros(form.samples, np.float32)
    wave[:count] = found[:, 0] if found.shape[1] == 1 else _mean(found)
    if in_16_bits:
        wave *= np.float32(2**-15)
    return wave if in_16_bits or np.abs(wave).max() <= LOUDEST else None


def counted(raw: bytes | memoryview) -> bytes | memoryview:
    """A FLAC whose head does not tell its samples, as one whose head does: libsndfile 1.2 reads no other to its end."""
    if bytes(raw[:4]) != b"fLaC" or len(raw) < _FLAC_HEAD or int.from_bytes(raw[18:26], "big") & _FLAC_SAMPLES:
        return raw
    form = int.from_bytes(raw[18:26], "big") | (_native.sound_head(bytes(raw)) or (0, 0, 0))[2]
    return b"".join((raw[:18], form.to_bytes(8, "big"), raw[26:]))


def _mean(channels: NDArray[Any]) -> NDArray[np.float64]:
    """Returns the mean of each row, whose channels are added one after the other."""
    total = channels[:, 0].astype(np.float64)
    for other in range(1, channels.shape[1]):
        total += channels[:, other]
    total /= channels.shape[1]
    return total


def features(wave: Floats, form: SoundForm) -> Floats:
    """float32 [frames * mel]: of each frame the logarithm of its energies by band, see native/kernels/log_mel.h."""
    found = np.empty(form.width, np.float32)
    energies(wave, form, found)
    return found


def energies(wave: Floats, form: SoundForm, to: Floats) -> None:
    """features() into `to`."""
    bands, turns = form.bands, -(-form.frames // FRAMES_A_TURN)
    half = len(bands.turn_of)
    work = np.empty((turns, half, 2 * FRAMES_A_TURN), np.float32)
    sizes = [turns, form.frames, form.samples, form.window, form.step, half, form.mel, len(bands.weights)]
    arrays = [wave, bands.taper, bands.turn_of, bands.first, bands.ends, bands.weights, work, to]
    _native.call_kernel("log_mel", "", [*sizes, FLOOR, *arrays])
