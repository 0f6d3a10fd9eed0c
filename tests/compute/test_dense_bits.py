"""The dense kernels give the bits of one fused multiply-add chain in ascending k, on every instruction set; sums over
rows those of chains of 256 rows, added in double.

Run as a program it is the guard-page check; its arguments are how many of the shapes, and the instruction sets.
"""

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from looped import over

from streamtrain import _native
from streamtrain.compute.ops.dense_grad_weight import TOTALS

Floats = npt.NDArray[np.float32]

SMALL = [  # rows, inputs, outputs: each kind of tile, edge and stretch of depth on every instruction set
    (0, 3, 2), (0, 3, 1), (1, 1, 1), (1, 28, 1), (17, 29, 1), (256, 28, 1), (70, 64, 1), (33, 131, 1), (5, 600, 1),
    (64, 28, 64), (37, 29, 5), (7, 64, 64), (33, 65, 63), (5, 1, 130), (70, 140, 17), (3, 5, 2), (257, 31, 33),
    (19, 300, 48), (13, 530, 33), (1000, 3, 72), (1030, 2, 1), (9, 7, 96), (2, 1100, 3), (40, 40, 8), (1, 64, 200),
    (513, 20, 4), (600, 70, 70), (1025, 6, 200), (700, 150, 1),
    # around a block of A (96 rows, in strips of 48) and of B (256 deep, 512 columns), packed and where it is
    (97, 257, 65), (520, 49, 72),
]  # fmt: skip
SHAPES = [*SMALL, (1024, 64, 64), (96, 129, 512), (95, 128, 513), (300, 259, 130), (514, 145, 513), (193, 520, 200)]
small_and_in_full_all = pytest.mark.parametrize(
    "shapes", [SMALL, pytest.param(SHAPES, marks=pytest.mark.full)], ids=["small", "all"]
)


def exact_fma(a: Floats, b: Floats, c: Floats) -> Floats:
    """a b + c rounded once: exact product and TwoSum in float64, rounded to odd, then to float32."""
    product, start = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + start
    back = total - product
    lost = (product - (total - back)) + (start - back)
    bits = total.view(np.int64)
    odd = np.where((lost != 0) & (bits & 1 == 0), bits + np.where((lost > 0) == (total > 0), 1, -1), bits)
    with np.errstate(over="ignore"):
        return odd.view(np.float64).astype(np.float32)


def chain(start: Floats, a_rk: Floats, b_kc: Floats) -> Floats:
    total = np.zeros((a_rk.shape[0], b_kc.shape[1]), np.float32) + start
    for k in range(a_rk.shape[1]):
        total = exact_fma(
            np.broadcast_to(a_rk[:, k : k + 1], total.shape), np.broadcast_to(b_kc[k], total.shape), total
        )
    return total


def added(rows: Floats) -> Floats:
    """The rows' sum, one after the other."""
    total = np.zeros(rows.shape[1], np.float32)
    for row in rows:
        total += row
    return total


def over_rows(first: Callable[[int, int], Floats], rows: int) -> Floats:
    """first(r, end) is a chain's sum over these rows."""
    chains = [first(r, min(r + 256, rows)) for r in range(0, max(rows, 1), 256)]
    total = chains[0].astype(np.float64)
    for each in chains[1:]:
        total += each
    return chains[0] if len(chains) == 1 else total.astype(np.float32)


def ragged(rng: np.random.Generator, *shape: int) -> Floats:
    """Numbers of very different size, so that every order of summing gives other bits."""
    return (rng.standard_normal(shape) * np.exp(rng.uniform(-6, 6, shape))).astype(np.float32)


class Case:
    """Inputs of one shape and what each kernel must make of them."""

    def __init__(self, rows: int, inputs: int, outputs: int) -> None:
        rng = np.random.default_rng([rows, inputs, outputs])
        self.shape = (rows, inputs, outputs)
        self.x, self.dy = ragged(rng, rows, inputs), ragged(rng, rows, outputs)
        self.w, self.bias = ragged(rng, inputs, outputs), ragged(rng, outputs)
        self.mask = np.maximum(ragged(rng, rows, inputs), 0)

    def expected(self) -> dict[str, Floats]:
        zero = np.zeros(1, np.float32)
        y = chain(self.bias, self.x, self.w)
        dx = chain(zero, self.dy, np.ascontiguousarray(self.w.T))
        rows = self.shape[0]
        dw = over_rows(lambda r, end: chain(zero, np.ascontiguousarray(self.x[r:end].T), self.dy[r:end]), rows)
        db = over_rows(lambda r, end: added(self.dy[r:end]), rows)
        return {
            "y": y, "relu": np.where(y <= 0, zero, y), "dx": dx, "masked": np.where(self.mask <= 0, zero, dx),
            "dw": dw, "db": db,
        }  # fmt: skip

    def run(self, isa: str, array: Callable[[Floats], Floats] = np.array) -> dict[str, Floats]:
        """Every kernel on `isa`; `array` makes the arrays the kernels see (a copy of what it is given)."""
        rows, inputs, outputs = shape = self.shape
        x, dy, w, bias, mask = (array(a) for a in (self.x, self.dy, self.w, self.bias, self.mask))
        fresh = np.full((max(shape) ** 2,), np.nan, np.float32)
        got = {
            name: array(fresh[: n * m].reshape(n, m))
            for name, n, m in [
                ("y", rows, outputs), ("relu", rows, outputs), ("dx", rows, inputs), ("masked", rows, inputs),
                ("dw", inputs, outputs),
            ]
        }  # fmt: skip
        got["db"] = array(fresh[:outputs])
        doubles = np.full((inputs, 2 * min(-(-outputs // 16) * 16, TOTALS)), np.nan, np.float32)
        totals = array(doubles).view(np.float64) if rows > 256 else None
        _native.call_kernel("dense_forward", "", [*shape, x, w, bias, 0, got["y"]], isa)
        _native.call_kernel("dense_forward", "", [*shape, x, w, bias, 1, got["relu"]], isa)
        _native.call_kernel("dense_grad_input", "", [*shape, dy, w, None, got["dx"]], isa)
        _native.call_kernel("dense_grad_input", "", [*shape, dy, w, mask, got["masked"]], isa)
        _native.call_kernel("dense_grad_weight", "", [*shape, x, dy, got["dw"], got["db"], totals], isa)
        return got


def test_the_reference_fma_is_exact() -> None:
    rng = np.random.default_rng(5)
    a, b = ragged(rng, 400), ragged(rng, 400)
    c = np.concatenate([ragged(rng, 200), -(a[200:] * b[200:])])  # half of them cancel nearly all of the product
    c[::7] *= np.float32(1e-12)
    for x, y, z, got in zip(a, b, c, exact_fma(a, b, c), strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        near = [got, np.nextafter(got, np.float32(np.inf)), np.nextafter(got, np.float32(-np.inf))]
        gaps = [abs(Fraction(float(v)) - exact) for v in near]
        assert gaps[0] <= min(gaps)
        assert gaps[0] < min(gaps[1:]) or int(got.view(np.int32)) % 2 == 0, "a tie must go to even"


@small_and_in_full_all
def test_bits_are_those_of_one_ascending_chain(shapes: Sequence[tuple[int, int, int]]) -> None:
    wrong = []
    for shape in shapes:
        case = Case(*shape)
        expected = case.expected()
        for isa in _native.supported_isas():
            got = case.run(isa)
            for name, want in expected.items():
                different = np.flatnonzero(want.view(np.int32) != got[name].view(np.int32))
                if different.size:
                    count = f"{different.size} of {want.size} differ, first at {different[0]}"
                    wrong.append(f"{shape} on {isa}: {name}: {count}")
    assert not wrong, "\n".join(wrong)


@over("isa", _native.supported_isas())
def test_ties_subnormals_and_overflow_are_rounded_once(isa: str) -> None:
    tiny, huge, step = np.float32(1e-45), np.float32(3e38), np.float32(1 + 2**-12)
    rows = [  # a, b, start: their sum in double is halfway between two floats, or below the normal ones, or above all
        (step, step, 2.0**-60), (step, step, -(2.0**-60)), (1 + 2**-23, 1 + 2**-23, 2.0**-70), (tiny, 0.5, 0.0),
        (tiny, 0.5, tiny), (tiny, -0.5, -0.0), (1e-20, 1e-20, 1e-40), (huge, 1.0, huge), (huge, -2.0, huge),
        (-0.0, 1.0, -0.0), (1e-23, 1e-22, -1e-45), (16777216.0, 1.0, 1.0), (16777216.0, 1.0, -0.5),
    ]  # fmt: skip
    table = np.array(rows, np.float32)
    for outputs in (1, 2, 40):
        for a, b, start in table:
            x, w = np.full((33, 1), a), np.full((1, outputs), b)
            y = np.empty((33, outputs), np.float32)
            _native.call_kernel("dense_forward", "", [33, 1, outputs, x, w, np.full(outputs, start), 0, y], isa)
            assert set(y.view(np.int32).ravel()) == {int(exact_fma(a[None], b[None], start[None]).view(np.int32)[0])}


@over("isa", _native.supported_isas())
@over("outputs", [1, 2, 40])
def test_relu_and_mask_keep_nan_and_turn_the_rest_at_or_below_0_to_0(outputs: int, isa: str) -> None:
    x = np.array([[np.nan], [-np.inf], [-1], [-0.0], [0], [1], [np.inf]], np.float32)
    y, ones = np.empty((7, outputs), np.float32), np.ones((1, outputs), np.float32)
    _native.call_kernel("dense_forward", "", [7, 1, outputs, x, ones, np.full(outputs, -0.0, np.float32), 1, y], isa)
    want = np.array([np.nan, 0, 0, 0, 0, 1, np.inf], np.float32)
    np.testing.assert_array_equal(y, np.repeat(want[:, None], outputs, axis=1))
    assert not np.signbit(y[1:]).any()
    mask, dx = np.repeat(x.T, 3, axis=0), np.empty((3, 7), np.float32)
    dy, w = np.ones((3, outputs), np.float32), np.ones((7, outputs), np.float32)
    _native.call_kernel("dense_grad_input", "", [3, 7, outputs, dy, w, mask, dx], isa)
    np.testing.assert_array_equal(dx, np.repeat([[outputs, 0, 0, 0, 0, outputs, outputs]], 3, axis=0))


@small_and_in_full_all
def test_nothing_outside_the_arrays_is_touched(shapes: Sequence[tuple[int, int, int]]) -> None:
    """The process prints each instruction set and shape before it runs them: the last is the one that failed."""
    command = [sys.executable, __file__, str(len(shapes)), *_native.supported_isas()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    at = done.stdout.rstrip().rpartition("\n")[2]
    assert done.returncode == 0, f"exit {done.returncode} (-11: an access outside an array) at {at}: {done.stderr}"
    assert at == f"{_native.supported_isas()[-1]} {shapes[-1]}"


class Fence:
    """Arrays whose first or last byte lies at a page that may not be touched."""

    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end
        self.maps: list[mmap.mmap] = []

    def __call__(self, values: Floats) -> Floats:
        page, libc = mmap.PAGESIZE, ctypes.CDLL(None, use_errno=True)
        inner = (values.nbytes + page - 1) // page * page
        area = mmap.mmap(-1, inner + 2 * page)
        self.maps.append(area)
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        for guard in (start, start + page + inner):
            assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
        offset = page + (inner - values.nbytes if self.at_end else 0)
        array = np.frombuffer(area, np.float32, values.size, offset).reshape(values.shape)
        array[...] = values
        return array


def main(count: str, *isas: str) -> None:
    for isa, shape in product(isas, SHAPES[: int(count)]):
        print(isa, shape, flush=True)
        case = Case(*shape)
        plain = case.run(isa)
        for at_end in (False, True):
            fenced = case.run(isa, Fence(at_end))
            for name, want in plain.items():
                assert want.tobytes() == fenced[name].tobytes(), name


if __name__ == "__main__":
    main(*sys.argv[1:])
