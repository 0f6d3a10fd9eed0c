"""Products of matrices in a thread whose stack is small, as servers and other languages' runtimes make them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import threading
import numpy as np
from streamtrain import _native

def product():
    x, w, y = (np.ones(shape, np.float32) for shape in ((200, 700), (700, 600), (200, 600)))
    _native.call_kernel("dense_forward", "", [200, 700, 600, x, w, np.zeros(600, np.float32), 0, y])
    found.append(float(y.min()))

found = []
threading.stack_size(96 << 10)
thread = threading.Thread(target=product)
thread.start()
thread.join()
print(*found)
"""


def test_a_product_needs_little_of_the_stack() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.split()) == (0, ["700.0"]), ran
