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
]
