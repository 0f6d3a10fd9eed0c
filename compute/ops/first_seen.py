"""Memory for what finds the first of a batch's entries in the same bucket: native/base/first_seen.h."""


def slots_of(entries: int) -> int:
    """Returns the number of slots that this many entries take."""
    return 1 << max(1, (2 * entries - 1).bit_length())
