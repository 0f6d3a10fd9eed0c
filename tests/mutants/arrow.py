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
        "texts and lists begin where the first of them does", _COLUMN,
        "begin = static_cast<u32>(offset(0));", "begin = 0;", f"{_TESTS}::test_texts_may_begin_anywhere",
    ),
    (
        "lists end in order and within their cells", _COLUMN,
        "if (!ordered || static_cast<u64>(last) > size) return", "if (false) return",
        f"{_TESTS}::test_lists_may_begin_anywhere_in_order",
    ),
    (
        "words of lists come from a dictionary of theirs", _STREAM,
        "const ArrowField &coded = field.cells();", "const ArrowField &coded = field;",
        f"{_TESTS}::test_lists_of_any_length",
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
