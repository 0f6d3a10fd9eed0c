"""Guards of columns, kinds and formats."""

GUARDS = [
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
