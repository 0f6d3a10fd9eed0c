"""Text as its words or letters and the runs of them (n-grams), each hashed into buckets: a bag, or a linear part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from streamtrain.columns.characters import capitals, in_word, word_ranges
from streamtrain.columns.kinds.bags import bag, block_name, ragged_block
from streamtrain.columns.kinds.category import Hashed
from streamtrain.columns.kinds.kind import Block, Kind, Named
from streamtrain.compute.input import MAX, MEAN, SUM

HELP = "text as its words, or letters, and runs of them; without `embed` each has a weight for each output"
MOST_TOKENS = 8  # of a run
MISPLACED: dict[str, Any] = {"misplaced": "only a feature of kind text has one"}


class Options(Hashed):
    """The settings of a text column."""

    ngrams: list[int] | int = Field(
        1, description="text: so many words (letters) in a row are an entry; [1, 2]: one, and two",
        json_schema_extra=MISPLACED,
    )  # fmt: skip
    by: Literal["word", "char"] = Field(
        "word", description="text: word: entries are runs of letters, marks and numbers; char: of any characters",
        json_schema_extra=MISPLACED,
    )  # fmt: skip
    lower_case: bool = Field(True, description="text: read capitals as small letters", json_schema_extra=MISPLACED)

    @property
    def sizes(self) -> tuple[int, int]:
        """The shortest and the longest entry."""
        given = self.ngrams if isinstance(self.ngrams, list) else [self.ngrams]
        return (given[0], given[-1]) if len(given) in (1, 2) else (0, 0)


class Text(Kind[Options]):
    options = Options

    def problems(self, column: Options) -> Iterator[str]:
        if column.buckets is None:
            yield "buckets: expected a number of buckets for a text, got none"
        if column.pool == MAX and column.embed is None:
            yield "pool: expected mean or sum, max with embed alone: without it the numbers are added to the outputs"
        least, longest = column.sizes
        if not 1 <= least <= longest <= MOST_TOKENS:
            yield f"ngrams: expected a number from 1 to {MOST_TOKENS}, or the least and the most, got {column.ngrams!r}"

    def missing_problem(self, column: Options) -> str | None:
        value = column.missing
        if not isinstance(value, str):
            return f'expected "dead_letter", "skip" or a text, got {value!r}'
        count = entry_count(column, value)
        too_long = count > column.most_entries and not column.cut
        return f"expected a text of at most {column.most_entries} entries, got {count}" if too_long else None

    def blocks(self, columns: Named[Options], loss: str) -> list[Block]:
        return [ragged_block(name, "i32", column) for name, column in columns]

    def engine_inputs(self, columns: Named[Options], loss: str) -> dict[str, Any]:
        pools = [column.pool or (MEAN if column.embed else SUM) for _, column in columns]
        return {
            "bags": [
                bag(name, column, column.embed or 0, pool)
                for (name, column), pool in zip(columns, pools, strict=True)
            ]
        }

    def places(self, name: str, column: Options) -> list[str]:
        return [block_name(name)]

    def native_options(self, column: Options, loss: str) -> dict[str, Any]:
        least, longest = column.sizes
        text_options: dict[str, Any] = {"words": column.by == "word", "least": least, "longest": longest}
        text_options |= {"ranges": list(word_ranges())} if column.by == "word" else {}
        text_options |= {"lower_case": True, "pairs": list(capitals())} if column.lower_case else {}
        hashing = {"buckets": column.buckets, "hash_bits": column.hash_bits}
        return {**hashing, **text_options, "most": column.most_entries, "cut": column.cut}

    def stand_in(self, column: Options, loss: str) -> str:
        return str(column.missing)

    def is_text(self, column: Options) -> bool:
        return True

    def takes_text(self, column: Options) -> bool:
        return True


def entry_count(column: Options, text: str) -> int:
    """Returns the number of the words or letters of a text, and of their runs."""
    words = "".join(each if in_word(each) else " " for each in text).split()
    tokens = len(words if column.by == "word" else text)
    least, longest = column.sizes
    return sum(max(0, tokens + 1 - size) for size in range(least, longest + 1))


KIND = Text()
