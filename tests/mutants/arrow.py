"""Guards of Arrow records."""

_STREAM, _COLUMN, _FLAT = "native/decode/arrow_stream.h", "native/decode/arrow_column.h", "native/decode/flat_buffer.h"
_TESTS = "tests/columns/test_arrow.py"

GUARDS = [
    (
        "tables within tables are looked at as often as there are bytes", _FLAT,
        "if (is_bad_ || ++looked_at_ > size_) return", "if (is_bad_) return",
        f"{_TESTS}::test_fields_within_fields_are_read_in_linear_time",
    ),
    (
        "rows that no bytes stand for are refused", _STREAM,
        "count > 0x7fffffff || static_cast<u64>(count) > 8 * message.body.size())", "count > 0x7fffffff)",
        f"{_TESTS}::test_rows_that_no_bytes_stand_for_are_refused",
    ),
    (
        "a compressed body is refused", _STREAM, "if (message.buffer.table(batch, 3)) return", "if (false) return",
        f"{_TESTS}::test_refused_as_a_whole",
    ),
    (
        "a batch is like the one before only where its metadata are", _STREAM,
        "if (message.type == BATCH && moves_all_ && message.text == known_batch_) {",
        "if (message.type == BATCH && moves_all_) {", f"{_TESTS}::test_batches_of_the_same_shape",
    ),
    (
        "a batch whose cells had to be made is bound again", _STREAM,
        "            if (!column.is_in_place()) return;\n", "", f"{_TESTS}::test_batches_of_the_same_shape",
    ),
    (
        "texts whose first does not begin at 0 are brought there", _COLUMN,
        "            if (begin == 0) return nullptr;", "            return nullptr;",
        f"{_TESTS}::test_texts_may_begin_anywhere",
    ),
    (
        "a time counts in the unit that its field tells", "native/decode/time_kind.h", "        if (span.unit)\n",
        "        if (false)\n", f"{_TESTS}::test_what_pyarrow_writes",
    ),
    (
        "a list with a missing number is refused", _COLUMN,
        "if (from.nulls != 0 && !all_there(from.there, each)) return", "if (false) return",
        f"{_TESTS}::test_lists_have_all_their_numbers",
    ),
]  # fmt: skip
