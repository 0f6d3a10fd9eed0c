"""A pass over the calls of a plan: elementwise calls that follow each other on as many elements become one launch, so
that what one leaves for the next is read where it was just written. It changes no bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamtrain.compute import ops
from streamtrain.compute.spec import Call, Chain, Outside, PerRow, Step, Tiled, refs_of

MOST = 8   # calls of a chain: what they work on is needed at the same time, and has to stay in a core's L1

_Place = tuple[int, str]                 # where in a buffer an array begins, and its type
_Places = dict[tuple[str, str], _Place]   # by space and name


def fused(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps of a phase with their chains, in the same order."""
    return tuple(
        Tiled(tuple(each for each in _chained(step.calls) if isinstance(each, Call | Chain)))
        if isinstance(step, Tiled) else step for step in _chained(steps)
    )


def is_elementwise(call: Call) -> bool:
    """Returns whether element i of its output depends only on the i-th elements of its inputs. The call has one
    size, which goes with the rows, and arrays of that many elements."""
    op = ops.get(call.op)
    sizes = [arg.name for arg in op.args if arg.role == "size" and arg.name != "before"]
    arrays = [arg for arg in op.args if arg.role not in ("size", "value", "known")]
    return (
        op.tiles == "rows" and op.each == (*sizes,) and len(sizes) == 1 and isinstance(call.args[0], PerRow)
        and all(arg.shape == op.each for arg in arrays)
    )


def _chained(steps: Iterable[Step]) -> Iterator[Step]:
    chain: list[Call] = []
    places: _Places = {}
    for step in steps:
        its = _places(step)
        if chain and not (its and isinstance(step, Call) and _goes_on(chain, places, step, its)):
            yield _one(chain)
            chain, places = [], {}
        if its and isinstance(step, Call):
            chain.append(step)
            places |= its
        else:
            yield step
    if chain:
        yield _one(chain)


def _goes_on(chain: list[Call], places: _Places, call: Call, its: _Places) -> bool:
    """Returns whether a call can extend the chain. It must have as many elements, and element i must be the same to
    all calls that see the same buffer."""
    same = all(places.get(key, place) == place for key, place in its.items())
    return same and len(chain) < MOST and call.args[0] == chain[0].args[0]


def _one(chain: list[Call]) -> Call | Chain:
    return chain[0] if len(chain) == 1 else Chain(tuple(chain))


def _places(step: Step) -> _Places | None:
    """Returns where the arrays of an elementwise call lie. Returns None for another call, or one that sees a buffer
    from two places."""
    if isinstance(step, Outside | Tiled | Chain) or not is_elementwise(step):
        return None
    places: _Places = {}
    for ref in refs_of(step.args):
        place = (ref.start, ref.dtype)
        if places.setdefault((ref.space, ref.name), place) != place:
            return None
    return places
