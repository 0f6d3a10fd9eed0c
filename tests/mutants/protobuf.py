"""Guards of Protobuf records and of the schemas they are read by."""

_TESTS = "tests/columns/test_protobuf.py"
_HOSTILE = f"{_TESTS}::test_hostile_bytes_have_a_path_and_a_byte"
_EVERY = f"{_TESTS}::test_every_type_against_the_slow_meaning_and_googles"
_NESTED = f"{_TESTS}::test_messages_within_messages_oneofs_and_doubled_fields"
_EVOLUTION = "tests/columns/test_protobuf_evolution.py"
_FORMAT = "native/decode/formats/protobuf.h"

GUARDS = [
    (
        "values of a repeated field that come apart are one list", "native/decode/protobuf_many.h",
        "        if (!list.is_open) {\n            list.is_open = any_ = true;",
        "        {\n            list.is_open = any_ = true;",
        "tests/columns/test_protobuf_lists.py::test_values_come_packed_and_one_by_one_and_in_parts",
    ),
    (
        "a list of a oneof goes with it", "native/decode/formats/protobuf.h",
        "        lists_.drop(now_->program.lists[list]);\n", "",
        "tests/columns/test_protobuf_lists.py::test_values_come_packed_and_one_by_one_and_in_parts",
    ),
    (
        "a packed run that is cut short is no list", "native/decode/protobuf_many.h",
        "            if (!at) list.wrong =", "            if (!at && !is_text && false) list.wrong =",
        "tests/columns/test_protobuf_lists.py::test_what_is_no_list",
    ),
    (
        "values that do not fit are not written", "native/decode/formats/protobuf_encoder.h",
        "            if (element.is_missing() || !put(each, element, made)) return false;\n",
        "            put(each, element, made);\n",
        "tests/columns/test_protobuf_lists.py::test_a_list_that_does_not_fit_is_refused",
    ),
    (
        "messages of an imported file are no part of the schema", "streamtrain/columns/formats/protobuf_schema.py",
        '{**each, "index": None} for each in known["messages"]]', 'each for each in known["messages"]]',
        "tests/columns/test_schema_references.py::test_protobuf_files_that_are_imported_are_no_part_of_the_schema",
    ),
    (
        "a length goes no further than the message", "native/decode/protobuf_bytes.h",
        "if (size <= static_cast<u64>(end - p)) [[likely]] return p;",
        "if (size <= static_cast<u64>(end - p) + 1) [[likely]] return p;", _HOSTILE,
    ),
    (
        "a number has no more than 64 bits", "native/decode/protobuf_bytes.h",
        "            if (i == 9 && byte > 1) break;\n", "", _HOSTILE,
    ),
    (
        "a field has a number", "native/decode/protobuf_bytes.h",
        "if (raw >= 8 && raw >> 32 == 0) return p;", "if (raw >> 32 == 0) return p;", _HOSTILE,
    ),
    (
        "a group is none of ours", "native/decode/protobuf_bytes.h",
        "            case 3:\n            case 4: return broken",
        "            case 3: return p;\n            case 4: return broken",
        _HOSTILE,
    ),
    (
        "plain numbers side by side end with the message", _FORMAT,
        "if (static_cast<u64>(end - behind) < sizeof(T) + tag.bytes || !tag.matches(behind)) return false;",
        "if (!tag.matches(behind)) return false;", _EVERY,
    ),
    (
        "a number that does not fit is no cell of a run", _FORMAT,
        "        p = asked > read ? at : behind;\n", "        p = behind;\n", _EVERY,
    ),
    (
        "a value of another wire type is no cell", _FORMAT,
        "                if (wire != static_cast<u8>(step->wire)) [[unlikely]] {",
        "                if (wire == 6) [[unlikely]] {", _HOSTILE,
    ),
    (
        "messages within each other have an end", _FORMAT,
        "            if (depth == DEEPEST)\n", "            if (depth == 1000 * DEEPEST)\n",
        f"{_TESTS}::test_messages_within_each_other_have_an_end",
    ),
    (
        "of a oneof the last is there alone", _FORMAT,
        "            if (step->others != Step::NONE) [[unlikely]] forget", "            if (false) forget", _NESTED,
    ),
    (
        "what goes unwritten is not missing", _FORMAT,
        "        if (silent != part.silent.size() || !in_order) {", "        if (false) {",
        f"{_TESTS}::test_what_is_read_is_what_google_reads",
    ),
    (
        "what came before is not what goes unwritten", _FORMAT,
        "            if (writer_.has(column)) continue;\n", "",
        f"{_TESTS}::test_what_is_read_is_what_google_reads",
    ),
    (
        "a Timestamp is of the years that there are", "native/decode/protobuf_many.h",
        "if (good && seconds >= LEAST_S &&", "if (good &&",
        f"{_TESTS}::test_a_timestamp_is_a_time",
    ),
    (
        "a cell that is not there is not written as 0", "native/decode/formats/protobuf_encoder.h",
        "            if (may_be || !table.columns[column].plan.kind) return;\n", "            return;\n",
        f"{_TESTS}::test_rows_are_written_by_the_schema",
    ),
    (
        "a schema that differs in a column is refused", _FORMAT,
        "        if (!now_->program.refusal.empty()) refuse_schema();\n", "",
        f"{_EVOLUTION}::test_refused_with_the_difference",
    ),
    (
        "another message of the schema is refused", "native/decode/protobuf_writer.h",
        "if (!found || found->short_name() != reader.short_name()) {", "if (!found) {",
        f"{_EVOLUTION}::test_refused_with_the_difference",
    ),
    (
        "a field is its number", "native/decode/protobuf_program.h",
        "const std::string &name = as ? as->name : field.name;", "const std::string &name = field.name;",
        f"{_EVOLUTION}::test_absorbed",
    ),
]
