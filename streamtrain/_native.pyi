"""streamtrain's native code. Kept by hand; tests/architecture compares it with the built module."""

from collections.abc import Sequence
from typing import Any

# memory: slot and state layouts

RANGE_BYTES: int
SLOT_HEADER_BYTES: int

class Block:
    name: str
    dtype: str
    width: int
    offset: int

class SlotLayout:
    row_capacity: int
    range_capacity: int
    blocks: list[Block]
    ranges_offset: int
    slot_bytes: int
    @staticmethod
    def make(row_capacity: int, range_capacity: int, blocks: Sequence[tuple[str, str, int]]) -> SlotLayout: ...

class StateBlock:
    name: str
    group: str
    rule: str
    offset: int
    count: int

class StateLayout:
    blocks: list[StateBlock]
    learned_bytes: int
    state_bytes: int
    @staticmethod
    def make(
        blocks: Sequence[tuple[str, str, str, int, int]], learned_bytes: int, state_bytes: int
    ) -> StateLayout: ...

# engine: kernels, instruction sets, compiled plans

def kernels() -> list[tuple[str, str, str, list[str], bool]]: ...
def kernel_texts() -> dict[str, str]: ...
def supported_isas() -> list[str]: ...
def selected_isa() -> str: ...
def select_isa(name: str) -> str: ...
def call_kernel(name: str, types: str, arguments: list[Any], isa: str = "") -> None: ...
