"""Guards of registries and of the settings their entries declare."""

_FRAMES = "tests/columns/test_schema_frames.py"
_HEADERS = "tests/e2e/test_header_schemas.py"
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
        "if (newest_->refusal.empty()) return", "if (true) return",
        "tests/columns/test_json_frame.py::test_a_frame_and_what_stands_behind",
    ),
    (
        "an id is asked for once", "native/decode/named_frame.h", "            if (found == known_.end()) {",
        "            {", "tests/columns/test_json_frame.py::test_ids_are_asked_for_once",
    ),
    (
        "a header names a schema before the value does", "native/decode/schema_frame.h", "            if (found.size)",
        "            if (false)", f"{_FRAMES}::test_header_and_prefix",
    ),
    (
        "a header holds a schema's name and no more", "native/decode/schema_frame.h",
        "return in_header && behind != end() ? nullptr : behind;", "return behind;",
        f"{_FRAMES}::test_header_and_prefix",
    ),
    (
        "of a message's place too", "native/decode/formats/protobuf.h",
        "if (behind && frame.in_header && behind != frame.end())", "if (false)",
        f"{_FRAMES}::test_header_and_prefix",
    ),
    (
        "a GUID is no id", "native/base/schema_name.h",
        "*this = {Form::guid, __builtin_bswap64(load<u64>(bytes + 1)),",
        "*this = {Form::id, __builtin_bswap64(load<u64>(bytes + 1)),", f"{_FRAMES}::test_header_and_prefix",
    ),
    (
        "a log's schemas have names", "topics/named_schemas.py", "if all(map(_is_name, names)):", "if names:",
        "tests/topics/test_rounds.py::test_schemas_that_are_none_are_found",
    ),
    (
        "an answer is of no schema", "native/predict/answer_delivery.cpp",
        "std::strcmp(header.name, SchemaFrame::HEADER) != 0)", "true)", f"{_HEADERS}::test_schemas_in_headers[json]",
    ),
    (
        "replay reads the headers that name schemas", "streamtrain/checks/replay/engine.py",
        "decoded_by(self._format, told_by(log.named_schemas))", "decoded_by(self._format, told_by({}))",
        f"{_HEADERS}::test_schemas_in_headers[json]",
    ),
    (
        "verify reads the headers that name schemas", "streamtrain/checks/verify/decoding.py",
        " or (self._is_framed and any(message.headers for message in messages))", "",
        f"{_HEADERS}::test_schemas_in_headers[json]",
    ),
    (
        "a letter alone has what names its schema", "streamtrain/checks/verify/dead_letters.py",
        "[*letter.headers]", "[]", f"{_HEADERS}::test_schemas_in_headers[json]",
    ),
    (
        "what is read shows what a header's schema makes of it", "streamtrain/cli/decoded.py",
        "value, message.headers)", "value)", f"{_HEADERS}::test_schemas_in_headers[json]",
    ),
    (
        "rows packed again are of other bytes", "native/repack/repacker.cpp",
        "        if (name == SchemaFrame::HEADER) continue;", "        //",
        f"{_HEADERS}::test_what_goes_on_from_records_with_headers",
    ),
    (
        "rows sent again are of other bytes", "streamtrain/clients/dead_letters.py",
        "of_other_bytes(dead_letters.own_headers(headers))", "dead_letters.own_headers(headers)",
        f"{_HEADERS}::test_what_goes_on_from_records_with_headers",
    ),
    (
        "what is sent again is read by its header's schema", "streamtrain/clients/dead_letters.py",
        "job_format(job), value, headers)", "job_format(job), value)",
        f"{_HEADERS}::test_what_goes_on_from_records_with_headers",
    ),
    (
        "a writer of frames takes no header that names another schema", "streamtrain/clients/writer.py",
        "        if self._is_framed and any(", "        if False and any(",
        f"{_HEADERS}::test_what_goes_on_from_records_with_headers",
    ),
    (
        "what refers to other schemas is read where none is looked into", "streamtrain/schemas.py",
        ' if formats.needs_schema(self._format_name) else ():', ":",
        "tests/e2e/test_json_registry.py::test_what_a_serializer_writes",
    ),
]  # fmt: skip
