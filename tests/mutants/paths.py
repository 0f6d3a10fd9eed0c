"""Guards of columns inside of others, of rows on lines, of what a cell means."""

_PATHS = "tests/columns/test_paths.py"
_MEANING = "tests/columns/test_one_meaning.py"

GUARDS = [
    (
        "of an object given twice the last one counts as a whole", "native/decode/formats/json.h",
        "        writer_.missing(of.columns);\n", "", f"{_PATHS}::test_a_dead_letter_names_the_place",
    ),
    (
        "of a map given twice the last one counts as a whole", "native/decode/formats/msgpack.h",
        "        writer_.missing(of.columns);\n", "", f"{_PATHS}::test_generated_msgpack",
    ),
    (
        "nesting is counted from the row", "native/decode/formats/json.h",
        "        ++depth_;\n", "", f"{_PATHS}::test_nesting_is_counted_from_the_row",
    ),
    (
        "an object is columns where its first known key is a column's name", "native/decode/formats/json.h",
        "!writer_.has_any() && plan_->tree.is_name(column)", "!writer_.has_any()",
        f"{_PATHS}::test_a_dict_is_columns_by_its_first_known_key",
    ),
    (
        "the same of a map", "native/decode/formats/msgpack.h",
        "!writer_.has_any() && plan_->tree.is_name(column)", "!writer_.has_any()",
        f"{_PATHS}::test_generated_msgpack",
    ),
    (
        "a path does not run through another column's cells", "native/decode/key_tree.cpp",
        "if (before != NO_COLUMN && (last || before >= 0))", "if (before != NO_COLUMN && last)",
        f"{_PATHS}::test_the_native_half_refuses_paths_that_cross",
    ),
    (
        "a value is an object or an array", "native/decode/key_tree.cpp",
        "if (!of.entries.empty() && of.is_array != step.is_index())", "if (false)",
        f"{_PATHS}::test_the_native_half_refuses_paths_that_cross",
    ),
    (
        "an other field does not stand beside a column's object", "native/bindings/python_table.h",
        "if (!names_.contains(key)) names_[key] = NOWHERE;", "",
        f"{_PATHS}::test_columns_are_given_by_name[1-json]",
    ),
    (
        "what an array leaves out is written", "native/decode/formats/json_encoder.h",
        "for (; of.is_array && index < each.step.index; ++index) separate(), row.to.missing();", "",
        f"{_PATHS}::test_columns_are_given_by_name[1-json]",
    ),
    (
        "elements apart are no run", "native/decode/key_tree.cpp",
        "own.step.index + 1 == next.step.index && own.target + 1 == next.target;",
        "own.step.index + 1 == next.step.index;",
        f"{_PATHS}::test_elements_side_by_side_are_columns_side_by_side",
    ),
    (
        "the same in msgpack", "native/decode/formats/msgpack_encoder.h",
        "for (; of.is_array && index < each.step.index; ++index) missing();", "",
        f"{_PATHS}::test_columns_are_given_by_name[1-msgpack]",
    ),
    (
        "an index is bounded", "streamtrain/columns/paths.py",
        " or any(isinstance(step, int) and step > MOST_INDEX for step in found):", ":",
        f"{_PATHS}::test_what_a_path_may_be",
    ),
    (
        "a name that is an array's in a path is refused", "streamtrain/columns/paths.py",
        "elif arrays and arrays[0] and path[0] in names:", "elif False:", f"{_PATHS}::test_mistakes_are_named",
    ),
    (
        "braces of a path go in step", "streamtrain/columns/names.py",
        "if len(paths) != len(names):", "if False:", f"{_PATHS}::test_mistakes_are_named",
    ),
    (
        "rows on one line are no lines", "native/decode/formats/json.h",
        "return std::memchr(behind, '\\n', static_cast<u64>(p - behind)) && (*p", "return (*p",
        "tests/columns/test_json_lines.py::test_lines",
    ),
    (
        "a first line of arrays is a row where others follow", "native/decode/formats/json.h",
        "        if (is_line(p, JsonText::space(p))) {", "        if (false) {",
        "tests/columns/test_json_lines.py::test_lines",
    ),
    (
        "a whole number has no negative zero", "native/decode/number_glance.h",
        "near != stop || (negative && p[1] == '0')", "near != stop",
        f"{_MEANING}::test_a_whole_number_has_no_negative_zero",
    ),
    (
        "nor where it is not seen at a glance", "native/decode/number_text.h",
        "number.negative && (magnitude || !number.is_integer)", "number.negative",
        f"{_MEANING}::test_a_whole_number_has_no_negative_zero",
    ),
    (
        "nor as a cell of any kind", "native/decode/cell_type.h",
        "return negative && magnitude ? -static_cast", "return negative ? -static_cast",
        f"{_MEANING}::test_a_whole_number_has_no_negative_zero",
    ),
    (
        "nor as a text", "native/decode/decimal_text.h",
        "if (negative && (value != 0 || text.find_first_of(\".eE\") != text.npos)) value", "if (negative) value",
        f"{_MEANING}::test_a_whole_number_has_no_negative_zero",
    ),
    (
        "a boolean is the class of its word", "native/decode/kinds/label.h",
        "        if (names_are_booleans_) ClassLabel::boolean(row, c, value);\n        else put_class",
        "        put_class", f"{_MEANING}::test_a_cell_means_the_same_everywhere",
    ),
]
