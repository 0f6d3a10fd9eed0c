"""Guards of registries and of the settings their entries declare."""

_OPTIONS = "compute/options.py"
_OPTION_TESTS = "tests/compute/test_options.py"
_LAYER_TESTS = "tests/regress/test_0400_a_layer_with_settings_of_its_own.py"

GUARDS = [
    (
        "a file without the word of its registry is no entry", "streamtrain/registry.py",
        'if path.stem != "__init__" and _declares(text, word):', 'if path.stem != "__init__":',
        "tests/test_registry.py::test_an_entry_is_a_file_with_the_registrys_word",
    ),
    (
        "names and help come from the text", "streamtrain/registry.py",
        "        found = self.constants(name)", "        found = self.get(name) and self.constants(name)",
        "tests/test_registry.py::test_the_names_and_help_of_all_registries_import_no_entry",
    ),
    (
        "true is no whole number", _OPTIONS,
        "if type(given) is not int or not self.least <= given <= self.most:",
        "if not isinstance(given, int) or not self.least <= given <= self.most:",
        f"{_OPTION_TESTS}::test_refused",
    ),
    (
        "what is above or below does not reach", _OPTIONS,
        "if not (in_range and self.above < given < self.below):", "if not in_range:", f"{_OPTION_TESTS}::test_refused",
    ),
    (
        "what has no default must be given", _OPTIONS, "if option.default is REQUIRED and name not in given:",
        "if name in given and name not in given:", f"{_OPTION_TESTS}::test_what_is_unknown_and_what_is_missing",
    ),
    (
        "a table is one layer", "compute/layers/__init__.py", "    if len(kinds) > 1:", "    if len(kinds) > 2:",
        f"{_LAYER_TESTS}::test_a_mistake_has_its_line_here_and_its_place_in_a_manifests_spec",
    ),
    (
        "what only the engine finds is found by the check", "streamtrain/job/checks.py",
        '        yield Mistake(gathered.where(("model",)), path, problem)', "        pass",
        f"{_LAYER_TESTS}::test_what_only_the_engine_finds_is_a_mistake_of_the_model",
    ),
    (
        "rows go to topics of rows alone", "streamtrain/clients/writer.py", "        if to not in row_topics():",
        "        if to is None:", "tests/topics/test_topic.py::test_programs_write_rows_to_topics_of_rows_alone",
    ),
    (
        "requests are written without a label", "streamtrain/cli/commands/produce.py",
        'label=topic(to).rows == "training"', "label=True",
        "tests/cli/test_topics_and_records.py::test_requests_have_no_label",
    ),
    (
        "an id that a registry refuses is no row", "native/decode/named_frame.h",
        'return newest_->refusal.empty() ? "" :', 'return newest_->refusal != "" ? "" :',
        "tests/columns/test_json_frame.py::test_a_frame_and_what_stands_behind",
    ),
    (
        "an id is asked for once", "native/decode/named_frame.h", "            if (found == known_.end()) {",
        "            {", "tests/columns/test_json_frame.py::test_ids_are_asked_for_once",
    ),
    (
        "what refers to other schemas is read where none is looked into", "streamtrain/schemas.py",
        ' if formats.needs_schema(self._name) else ():', ":",
        "tests/e2e/test_json_registry.py::test_what_a_serializer_writes",
    ),
]  # fmt: skip
