"""An op's kernel on a device: its arguments there and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute.backends._device import TO_DEVICE, TO_HOST, Device
from streamtrain.compute.backends.reference import at_address
from streamtrain.compute.spec import Op


def run_on(device: Device, op: Op, types: str, given: list[Any]) -> None:
    """Launches it once; the arguments, step blocks too, are then what it has made of them."""
    held: list[tuple[Any, Any]] = []   # device memory, and the host's that it is of

    def there(host: Any) -> int:
        memory = device.buffer(host.nbytes)
        held.append((memory, host))
        device.copy(memory.data.ptr, host.ctypes.data, host.nbytes, TO_DEVICE, device.compute)
        return int(memory.data.ptr)

    values: list[Any] = []
    for value in given:
        if isinstance(value, _native.StepBlock):
            values.append(there(at_address(value.address, _native.STEP_BYTES)))
        elif isinstance(value, list):
            values.append(there(np.array([there(one) for one in value], np.uint64)))
        elif isinstance(value, np.ndarray):
            values.append(there(value))
        else:
            values.append(0 if value is None else value)
    with device.handle, device.compute:
        device.launch(op, types, values)
    for memory, host in held:
        device.copy(host.ctypes.data, memory.data.ptr, host.nbytes, TO_HOST, device.compute)
    device.compute.synchronize()
