"""A pass over the calls of a plan: what goes by rows is done for a tile of rows at a time, from the input to the
gradients, so that what a call leaves for the next stays in the cache, and takes a tile's memory.

Sums over rows are those over tiles, added in their order: a tile's rows are part of what a gradient is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamtrain.compute import ops
from streamtrain.compute.builder import Builder
from streamtrain.compute.spec import (
    WRITES,
    Arg,
    Call,
    Outside,
    PerRow,
    Ref,
    Refs,
    Step,
    Tiled,
    Tiles,
    Turn,
    flat,
    refs_of,
    size_bytes,
)

Key = tuple[str, str]                 # space and name


@dataclass(frozen=True)
class Access:
    """The use of a buffer by a call."""

    key: Key
    reads: bool
    writes: bool
    by_rows: bool   # of a call that is done by tiles: row r of it for row r of the batch


@dataclass(frozen=True)
class Tiling:
    """phases: with what is Tiled; local: the buffers of which nobody needs more than a tile's rows."""

    phases: Mapping[str, tuple[Step, ...]]
    local: frozenset[str] = frozenset()


def row_bytes(arg: Arg, value: Ref, call: Call) -> int:
    """Returns the row bytes of an array that has rows of the batch, as the op declares; 0 for another array."""
    if not arg.shape or not isinstance(arg.shape[0], str):
        return 0
    if arg.of:
        return _bytes_of(value.shape[0], value.shape[1:], value)
    names = [each.name for each in ops.get(call.op).args]

    def size(name: str | int) -> int | PerRow:
        found = name if isinstance(name, int) else call.args[names.index(name)]
        assert isinstance(found, int)
        return found

    return _bytes_of(size(arg.shape[0]), map(size, arg.shape[1:]), value)


def _bytes_of(rows: int, columns: Iterable[int], value: Ref) -> int:
    return rows.times * size_bytes(value.dtype, (*columns,)) if isinstance(rows, PerRow) else 0


def tiled(builder: Builder, phases: Mapping[str, Sequence[Call | Outside]], output: Ref, fused: bool) -> Tiling:
    """The calls of each phase in an order that gives the same. Not `fused`: each sum is a Tiled of its own, and nothing
    else is; it has the same bits."""
    make = _fused if fused else _sums
    found = {phase: tuple(make(builder, calls)) for phase, calls in phases.items()}
    return Tiling(found, _local(builder, found, output))


def _fused(builder: Builder, calls: Sequence[Call | Outside]) -> Iterator[Step]:
    levels = _levels(calls, [_tiles(call) != "" for call in calls])
    for level in sorted(set(levels)):
        mine = [call for call, its in zip(calls, levels, strict=True) if its == level]
        if level % 2:
            yield Tiled(tuple(_with_sums(builder, (call for call in mine if isinstance(call, Call)))))
        else:
            yield from mine


def _sums(builder: Builder, calls: Sequence[Call | Outside]) -> Iterator[Step]:
    for call in calls:
        if isinstance(call, Call) and _tiles(call) == "sum":
            yield Tiled(tuple(_with_sums(builder, [call])))
        else:
            yield call


def _tiles(call: Call | Outside) -> Tiles:
    """Returns how the call may be tiled; "" if it may not. It must be for rows of the batch, which not every
    elementwise call is."""
    if isinstance(call, Outside) or not any(isinstance(arg, PerRow) for arg in call.args):
        return ""
    return ops.get(call.op).tiles


def _arrays(call: Call | Outside) -> Iterator[tuple[Ref, str, bool]]:
    """Yields each array that the call works on, with its role and whether it has rows."""
    if isinstance(call, Outside):
        yield from ((ref, "changed", False) for ref in (*call.args, *call.besides))
        return
    for arg, value in zip(ops.get(call.op).args, call.args, strict=True):
        for ref in refs_of([value]):
            yield ref, arg.role, row_bytes(arg, ref, call) > 0


def leading_to(target: Ref, begun: Ref, calls: Sequence[Call | Outside]) -> list[Call | Outside]:
    """The calls that make `target` of `begun`: to be made again where `begun` has changed."""
    fresh: set[Key] = {(begun.space, begun.name)}
    chosen = []
    for call in calls:
        reads, writes = _reads_and_writes(call)
        if reads & fresh:
            chosen.append((call, reads, writes))
            fresh |= writes
    needed: set[Key] = {(target.space, target.name)}
    found = []
    for call, reads, writes in reversed(chosen):
        if writes & needed:
            needed |= reads
            found.append(call)
    return found[::-1]


def _reads_and_writes(call: Call | Outside) -> tuple[set[Key], set[Key]]:
    arrays = [((ref.space, ref.name), role) for ref, role, _ in _arrays(call)]
    reads: set[Key] = {key for key, role in arrays if role not in WRITES}
    return reads, {key for key, role in arrays if role not in ("given", "known")}


def _accesses(calls: Sequence[Call | Outside]) -> list[list[Access]]:
    """Returns the accesses of each call. A Ref over all parameters or gradients counts as an access to each of them."""
    names: dict[str, dict[str, int]] = {}
    for call in calls:
        for ref, _, _ in _arrays(call):
            of_space = names.setdefault(ref.space, {})
            of_space[ref.name] = min(ref.elements, of_space.get(ref.name, ref.elements))
    found = []
    for call in calls:
        mine = []
        for ref, role, by_rows in _arrays(call):
            if ref.space == "step":
                mine += _of_step(role)
                continue
            whole = ref.space in ("state", "gradient") and ref.elements > names[ref.space][ref.name]
            for name in names[ref.space] if whole else (ref.name,):
                mine.append(Access((ref.space, name), role not in WRITES, role != "given", by_rows))
        found.append(mine)
    return found


def _of_step(role: str) -> list[Access]:
    """Returns a kernel's accesses to the step block. It reads what is there before the step, or the batch's weight.
    It adds to the results."""
    if role == "known":
        return []
    given = Access(("step", "given"), role != "out", role == "out", False)
    results = Access(("step", "results"), True, True, False)
    return [given] + [results] * (role == "changed")


@dataclass
class _Seen:
    """The last levels at which a key was written, and read by rows or otherwise since."""

    written: int = -1
    written_by_rows: bool = False
    read: dict[bool, int] = field(default_factory=dict)


def _after(level: int, tiled_by_rows: bool, tiled: bool, by_rows: bool) -> int:
    """The first level at which a call may be, of the parity of its kind, that needs one at `level` to be done. In one
    group of tiles what has rows may follow, and nothing else: another tile would change it."""
    if level % 2 != tiled:
        return level + 1
    return level if not tiled or (tiled_by_rows and by_rows) else level + 2


def _levels(calls: Sequence[Call | Outside], tiled: Sequence[bool]) -> list[int]:
    """For each call when it is made: at an odd level what is done by tiles, as early as may be; at an even one what is
    not, as late as may be."""
    accesses = _accesses(calls)
    levels = []
    seen: dict[Key, _Seen] = {}
    for mine, by_tiles in zip(accesses, tiled, strict=True):
        level = int(by_tiles)
        for each in mine:
            before = seen.setdefault(each.key, _Seen())
            if before.written >= 0:
                level = max(level, _after(before.written, before.written_by_rows, by_tiles, each.by_rows))
            for by_rows, read in before.read.items() if each.writes else ():
                level = max(level, _after(read, by_rows, by_tiles, each.by_rows))
        for each in mine:
            now = seen[each.key]
            if each.writes:
                seen[each.key] = _Seen(level, each.by_rows)
            elif each.reads:
                now.read[each.by_rows] = max(level, now.read.get(each.by_rows, 0))
        levels.append(level)
    return _late(accesses, levels)


def _late(accesses: Sequence[Sequence[Access]], levels: list[int]) -> list[int]:
    """The levels with each even one as high as what follows lets it be."""
    highest = max(levels, default=0)
    last = highest + highest % 2
    read: dict[Key, int] = {}      # the lowest level of those that follow
    written: dict[Key, int] = {}
    for at in reversed(range(len(levels))):
        if levels[at] % 2 == 0:
            bound = last
            for each in accesses[at]:
                followers = [written.get(each.key, last)] + ([read.get(each.key, last)] if each.writes else [])
                bound = min(bound, *(level - level % 2 for level in followers))
            levels[at] = bound
        for each in accesses[at]:
            after = written if each.writes else read
            after[each.key] = min(after.get(each.key, last), levels[at])
    return levels


def _with_sums(builder: Builder, calls: Iterable[Call]) -> Iterator[Call]:
    """Behind each sum over rows what adds it to those of the tiles before. What a tile writes without rows is own."""
    for call in calls:
        own = {ref: replace(ref, own=True) for ref, role, by_rows in _arrays(call) if role in WRITES and not by_rows}
        yield replace(call, args=tuple(
            Refs(tuple(own.get(each, each) for each in arg.refs)) if isinstance(arg, Refs)
            else own.get(arg, arg) if isinstance(arg, Ref) else arg for arg in call.args
        ))
        if ops.get(call.op).tiles != "sum":
            continue
        for ref, role, by_rows in _arrays(call):
            if role == "out" and not by_rows:
                total = builder.buffer(f"{ref.name}.total", ref.elements, dtype="f64")
                yield Call("chain_sum", "", (ref.elements, Turn(), own[ref], total, ref))


def _local(builder: Builder, phases: Mapping[str, Sequence[Step]], output: Ref) -> frozenset[str]:
    """A buffer that in each phase only one group of tiles needs, which writes it first."""
    needed: dict[str, bool] = {output.name: False}
    for steps in phases.values():
        groups: dict[str, int] = {}
        for at, step in enumerate(steps):
            for call in flat([step]):
                for ref, role, by_rows in _arrays(call):
                    if ref.space == "work":
                        good = isinstance(step, Tiled) and by_rows
                        good &= groups[ref.name] == at if ref.name in groups else role in WRITES
                        groups.setdefault(ref.name, at)
                        needed[ref.name] = needed.get(ref.name, True) and good
    return frozenset(name for name, good in needed.items() if good and name in builder.buffers)
