"""streamtrain's native code. Kept by hand; tests/architecture compares it with the built module."""

RANGE_BYTES: int
SLOT_HEADER_BYTES: int
