"""Energies of sound in bands of the mel scale: what a decoder of clips calls, and no model's plan."""

from __future__ import annotations

from streamtrain.compute.spec import Op, given, out, scratch, size, value

HELP = "log of a clip's energies in bands of the mel scale, frame by frame"
FRAMES_A_TURN = 16   # native/kernels/log_mel.h

OPS = (
    Op(
        "log_mel",
        (size("turns"), size("frames"), size("samples"), size("window"), size("step"), size("half"), size("bands"),
         size("entries"), value("floor"), given("wave", "f32", "samples"), given("taper", "f32", "window"),
         given("turn_of", "f32", "half", 2), given("first", "i32", "bands"), given("ends", "i32", "bands"),
         given("weights", "f32", "entries"), scratch("work", "f32", "turns", "half", 2 * FRAMES_A_TURN),
         out("y", "f32", "frames", "bands")),
        rows=("turns",),
    ),
)
