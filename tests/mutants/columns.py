"""Guards of columns, kinds and formats."""

_TEXTS = "tests/columns/test_text_cells.py"
_BLOCKS = "tests/columns/test_packed_blocks.py::test_rows_by_blocks_are_rows_one_by_one"

GUARDS = [
    (
        "a row that waits is not passed by one that a missing cell ends", "native/decode/formats/packed.h",
        "for (u32 i = to; i < from && !held(); ++i)", "for (u32 i = to; i < from; ++i)",
        "tests/columns/test_ragged.py::test_a_row_that_waits_is_not_passed_by_one_that_a_missing_cell_ends[resumed]",
    ),
    (
        "a text that tells no zone is no time where the column tells none", "native/decode/time_text.h",
        "        if (zone_.empty()) return false;\n", "        if (zone_.empty()) return true;\n",
        f"{_TEXTS}::test_times_as_text",
    ),
    (
        "a day that its month has not is no day", "native/decode/time_text.h",
        "of.day > days_in_month(of.year, of.month) || ", "", f"{_TEXTS}::test_times_as_text",
    ),
    (
        "an offset holds from its local time on", "native/decode/time_text.h",
        "zone_[2 * middle] <= local_s ? low", "zone_[2 * middle] < local_s ? low",
        f"{_TEXTS}::test_every_change_of_a_zone",
    ),
    (
        "a number beyond double's range is not 0", "native/decode/decimal_text.h",
        "is_beyond_one(text) ? std::numeric_limits<f64>::infinity() : 0;", "0;",
        f"{_TEXTS}::test_numbers_as_text[number]",
    ),
    (
        "a text is a number only where the column says so", "native/decode/number_kind.h",
        "if (parses_ && parse_decimal(utf8, value))", "if (parse_decimal(utf8, value))",
        f"{_TEXTS}::test_a_text_is_no_number_where_nobody_says_so",
    ),
    (
        "what lies in a missing cell counts for nothing", "native/decode/formats/packed.h",
        "            missing.each([&](u32 at) { std::memcpy(cells + width * at, cells + width * other, width); });\n",
        "",
        f"{_BLOCKS}[value-time]",
    ),
    (
        "a missing cell has its stand-in in a block of floats", "native/decode/float_runs.h",
        "            missing.each([&, stand_in = stand_ins_[i]](u32 at) { copy[at] = stand_in; });\n", "",
        f"{_BLOCKS}[value-number]",
    ),
    (
        "a missing cell that ends its row does so in a block", "native/decode/formats/packed.h",
        "ended |= column->nulls_of(row, count);", "ended |= column->nulls_of(row, 0);",
        f"{_BLOCKS}[skip-category]",
    ),
    (
        "an empty word is a missing cell", "native/decode/column_span.h",
        "column.missing == Missing::value ? column.kind->stand_in_word() : EMPTY",
        "column.kind->stand_in_word()", f"{_BLOCKS}[skip-category]",
    ),
    (
        "an empty text is a missing cell", "native/decode/formats/packed.h",
        "            if (texts_[i].empty()) missing.add(i);\n            else if", "            if",
        f"{_BLOCKS}[value-category]",
    ),
    (
        "words are those of their record", "native/decode/column_span.h",
        "if (table == known_table && words.size() == entries) return;", "if (words.size() == entries) return;",
        "tests/columns/test_packed_blocks.py::test_words_are_those_of_their_record",
    ),
    (
        "a double rounded to 0 is no class", "native/decode/kinds/label.h",
        " && type != CellType::f64;\n    }\n    bool put_span", ";\n    }\n    bool put_span",
        f"{_BLOCKS}[dead_letter-label]",
    ),
    (
        "a double rounded to 0 is no weight", "native/decode/kinds/weight.h",
        " && type != CellType::f64; }", "; }", f"{_BLOCKS}[dead_letter-weight]",
    ),
    (
        "a setting of another kind is a mistake", "streamtrain/columns/column.py",
        "if name not in self.entry.options.model_fields and", "if False and",
        "tests/columns/test_kinds.py::test_a_setting_of_another_kind_is_a_mistake",
    ),
    (
        "a number too small for float32 stays what it is in a packed record", "streamtrain/columns/formats/packed.py",
        "return array if ((narrow == 0) != (array == 0)).any() else narrow", "return narrow",
        "tests/columns/test_bad_input.py::test_a_row_weight_below_0_or_no_number_is_a_dead_letter",
    ),
    (
        "a block that no column gives holds its constant", "native/decode/formats/packed.h",
        "for (const DecodePlan::Bits &constant : plan_->constants) rows.fill(constant.place, constant.bits);", "",
        "tests/columns/test_formats.py::test_examples",
    ),
    (
        "integers that are names of classes are no index", "native/decode/kinds/label.h",
        "if (names_are_integers_) return name(row, c, digits, digits);", "",
        "tests/columns/test_formats.py::test_generated_packed",
    ),
    (
        "a column without a place in the slot is refused", "native/decode/decode_plan.h",
        "if (used_[b] + bytes > plan_.blocks[b].stride) break;", "",
        "tests/columns/test_kinds.py::test_a_layout_without_room_for_a_column_is_refused",
    ),
    (
        "a row waits for the next slot where a block is full", "native/decode/row_writer.h",
        "if (ragged_.fits(slot_, at_)) {", "if (true) {",
        "tests/columns/test_ragged.py::test_rows_fill_slots_until_a_block_is_full",
    ),
    (
        "a row that no slot has room for is dead", "native/decode/ragged_rows.h",
        "if (row.count > row.capacity) return row.capacity;", "",
        "tests/columns/test_ragged.py::test_rows_fill_slots_until_a_block_is_full",
    ),
    (
        "a row that waits is not passed", "native/decode/record_decoder.h",
        "return row_ - held_;", "return row_;",
        "tests/columns/test_ragged.py::test_rows_fill_slots_until_a_block_is_full",
    ),
    (
        "ragged rows behind the batch are empty", "native/ring/slot.h",
        "for (u32 row = rows; row < row_capacity; ++row) ends[row + 1] = ends[rows];", "",
        "tests/columns/test_ragged.py::test_rows_fill_slots_until_a_block_is_full",
    ),
    (
        "a log's format and options are those of this build", "streamtrain/columns/formats/__init__.py",
        "if wrong is not None:", "if False:",
        "tests/job/test_format_options.py::test_a_log_that_names_what_this_build_has_not_is_refused",
    ),
    (
        "a plan reads no ragged block as a fixed one", "compute/model.py",
        "if block is None or block.ragged or", "if block is None or",
        "tests/compute/test_byte_blocks.py::test_a_block_of_another_form_is_refused",
    ),
]
