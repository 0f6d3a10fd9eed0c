"""Guards of Avro records and of the schemas they are read by."""

_AVRO = "tests/columns/test_avro.py"
_HOSTILE = f"{_AVRO}::test_hostile_bytes_have_a_path_and_a_byte"
_LOAD = f"{_AVRO}::test_mistakes_of_schema_and_columns_are_told_at_load"
_EVOLUTION = "tests/columns/test_avro_evolution.py"
_REFUSED = f"{_EVOLUTION}::test_refused_with_the_difference"
_REGISTRY = "tests/e2e/test_avro_registry.py"

GUARDS = [
    (
        "a length goes no further than the record", "native/decode/avro_bytes.h",
        "if (size > left(p)) [[unlikely]]", "if (size > left(p) + 1) [[unlikely]]",
        f"{_AVRO}::test_every_type_against_the_slow_meaning",
    ),
    (
        "a number has no more than 64 bits", "native/decode/avro_bytes.h",
        "            if (i == 9 && byte > 1) break;\n", "", _HOSTILE,
    ),
    (
        "a union's branch is one of its own", "native/decode/avro_bytes.h",
        "        if (value < branches) return p;\n", "        if (value <= branches) return p;\n",
        f"{_AVRO}::test_every_type_against_the_slow_meaning",
    ),
    (
        "a block's elements each take a byte", "native/decode/avro_bytes.h",
        "return sized || count <= left(p) ? p : claim(start, p, count);", "return p;",
        f"{_AVRO}::test_an_array_passed_over_costs_what_its_bytes_cost",
    ),
    (
        "rows of a block that tells its size each take a byte", "native/decode/formats/avro.h",
        "        if (p && left_ > bytes_.left(p)) p = bytes_.claim(start, p, left_);", "        //",
        f"{_AVRO}::test_rows_before_the_damage_train_and_bad_cells_are_rows_of_their_own",
    ),
    (
        "records within each other have an end", "native/decode/formats/avro.h",
        "if (depth + op.inside >= DEEPEST)", "if (depth + op.inside >= 1000 * DEEPEST)",
        f"{_AVRO}::test_records_within_each_other_have_an_end",
    ),
    (
        "what is behind a datum is not passed over", "native/decode/formats/avro.h",
        "        if (shape_ == Shape::one && p != bytes_.end()) return refuse_rest(p);\n", "", _HOSTILE,
    ),
    (
        "an enum's symbol is one of its own", "native/decode/formats/avro.h",
        "        if (static_cast<u64>(value) >= op.count)\n", "        if (static_cast<u64>(value) > op.count)\n",
        f"{_AVRO}::test_a_symbol_behind_the_last_is_none",
    ),
    (
        "a decimal has an end", "native/decode/avro_cells.h",
        "    if (size > MOST_DECIMAL_BYTES)\n", "    if (size > 2 * MOST_DECIMAL_BYTES)\n",
        f"{_AVRO}::test_a_decimal_of_too_many_bytes_is_none",
    ),
    (
        "an int holds 32 bits", "native/decode/formats/avro_encoder.h",
        "is_int ? std::numeric_limits<i32>::max() : ", "",
        f"{_AVRO}::test_rows_are_written_by_the_schema",
    ),
    (
        "what a manifest says reads no file", "streamtrain/job/documents.py",
        "    if folder is None:\n", "    if folder is not None and False:\n",
        f"{_AVRO}::test_the_schema_stands_beside_the_job_file_and_its_text_in_the_settings",
    ),
    (
        "a time is told in one unit", "streamtrain/columns/formats/_avro_columns.py",
        "    if told is not None and column.unit is not None and told != unit:\n",
        "    if told is not None and column.unit is not None and told != unit and False:\n", _LOAD,
    ),
    (
        "a local time is none of 1970's", "streamtrain/columns/formats/_avro_columns.py",
        "    if logical.startswith(\"local-\"):\n", "    if logical.startswith(\"never-\"):\n", _LOAD,
    ),
    (
        "a record of one row holds no other", "streamtrain/columns/formats/avro.py",
        "    return rows_of(schema).many\n", "    return True\n",
        f"{_AVRO}::test_rows_that_are_sent_again_have_a_record_each",
    ),
    (
        "a schema that differs in a column is refused", "native/decode/formats/avro.h",
        "        if (!now_->program.refusal.empty()) return refuse_schema();\n", "", _REFUSED,
    ),
    (
        "a time in another unit is no promotion", "native/decode/avro_resolution.h",
        "    if ((is_time || was_time) && writer.logical_name != reader.logical_name) return false;\n", "", _REFUSED,
    ),
    (
        "a decimal of another scale is no promotion", "native/decode/avro_resolution.h",
        "return writer.scale == reader.scale;", "return true;", _REFUSED,
    ),
    (
        "every branch of a writer's union is one of the reader's", "native/decode/avro_resolution.h",
        "for (const AvroType *branch : writer.inner)", "for (const AvroType *branch : {writer.inner[0]})",
        _REFUSED,
    ),
    (
        "a renamed field is found by its alias", "native/decode/avro_program.h",
        "if (alias == field.name && !named(writer, each.name)) return &each;", "if (alias.empty()) return &each;",
        f"{_EVOLUTION}::test_absorbed",
    ),
    (
        "a field that a writer has not is the reader's default", "native/decode/avro_program.h",
        "if (column < 0 || has || !field.otherwise) continue;", "continue;",
        f"{_EVOLUTION}::test_absorbed",
    ),
    (
        "what is no frame is refused", "native/base/schema_name.h",
        "if (size >= ID_BYTES && bytes[0] == 0) {", "if (size >= ID_BYTES) {", f"{_EVOLUTION}::test_frames",
    ),
    (
        "a record whose schema is not known yet waits", "native/train/slot_filler.cpp",
        "    if (batch_.record().waits()) return false;\n", "",
        f"{_REGISTRY}::test_a_registry_that_is_away_is_waited_for[away]",
    ),
    (
        "a server that is no registry says nothing of a schema", "streamtrain/schemas.py",
        "            if getattr(error, \"error_code\", None) in (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA):\n",
        "            if getattr(error, \"http_status_code\", None) == 404:\n",
        f"{_REGISTRY}::test_a_registry_that_is_away_is_waited_for[404]",
    ),
    (
        "an id is asked for once", "streamtrain/schemas.py",
        "        if (known := self._answers.get(name)) is not None:\n",
        "        if (known := self._answers.get(\"\")) is not None:\n",
        f"{_REGISTRY}::test_an_id_is_asked_for_once",
    ),
    (
        "nothing is ready while a schema is waited for", "streamtrain/telemetry/trainer.py",
        " or event.get(\"waiting_for_schema\")", "",
        "tests/test_telemetry.py::test_not_ready_while_a_schema_is_waited_for",
    ),
    (
        "a registry's values are not shown", "streamtrain/job/registry_settings.py",
        "parts.netloc.rpartition('@')[2]", "parts.netloc",
        "tests/job/test_registry_settings.py::test_properties_are_flattened_and_kept_apart",
    ),
    (
        "a partition that waits loses nothing", "native/train/ingest.cpp",
        "std::find(waiting_.begin(), waiting_.end(), partition) != waiting_.end()", "false",
        f"{_REGISTRY}::test_partitions_of_known_schemas_go_on",
    ),
    (
        "a bounded run does not end before what waits", "native/train/ingest.h",
        " && waiting_.empty());", ");", f"{_REGISTRY}::test_partitions_of_known_schemas_go_on",
    ),
    (
        "what was held is read again", "streamtrain/run/roles/ingest.py",
        "                    self._ingest.rewind()\n                for event",
        "                    pass\n                for event",
        f"{_REGISTRY}::test_partitions_of_known_schemas_go_on",
    ),
    (
        "a predictor that waits for a schema hears a stop", "streamtrain/run/roles/predictor.py",
        "decoded_by(config.format, schemas)", "decoded_by(config.format, schemas.__self__.wait)",
        f"{_REGISTRY}::test_a_predictor_hears_a_stop_while_it_waits_for_a_schema",
    ),
    (
        "what a schema refers to is read with it", "streamtrain/schemas.py",
        "found.schema_str, tuple(others.values())", "found.schema_str",
        "tests/e2e/test_registry_references.py::test_writers_whose_schemas_refer_to_others[avsc]",
    ),
    (
        "what a schema refers to is waited for", "streamtrain/schemas.py",
        "            if getattr(error, \"error_code\", None) in (_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA):\n",
        "            if not others:\n",
        "tests/e2e/test_registry_references.py::test_what_a_schema_refers_to_is_waited_for",
    ),
    (
        "a definition of another schema stands once", "streamtrain/columns/formats/avro_schema.py",
        "if kind in _NAMED and self._is_known(given, namespace):", "if False:",
        "tests/columns/test_schema_references.py::test_an_avro_type_within_another_is_known_by_its_own_name",
    ),
    (
        "a definition keeps its own namespace", "streamtrain/columns/formats/avro_schema.py",
        "return {**found, \"namespace\": \"\"} if \".\" not in full and namespace else found", "return found",
        "tests/columns/test_schema_references.py::test_an_avro_definition_stands_where_it_is_named_first",
    ),
    (
        "a start takes the registry's newest schema where none is given", "streamtrain/cli/commands/train.py",
        "return with_schema(session.connected_job(job, flags))",
        "return with_schema and session.connected_job(job, flags)",
        "tests/e2e/test_registry_newest.py::test_the_newest_schema_is_the_readers",
    ),
    (
        "a start and a writer wait for the registry", "streamtrain/schemas.py",
        "                if time.monotonic() >= until_s:\n", "                if until_s:\n",
        "tests/e2e/test_registry_newest.py::test_the_newest_schema_is_the_readers",
    ),
    (
        "a manifest holds the schema its records are read by", "streamtrain/job/job.py",
        "            check_schema(gathered)\n", "            assert check_schema\n",
        "tests/e2e/test_registry_newest.py::test_a_manifest_without_its_schema_is_refused",
    ),
    (
        "columns that the registry's schema does not give are told at the start", "streamtrain/job/job.py",
        "for name, problem in formats.mistakes(named, self.schema)]", "for name, problem in ()]",
        "tests/e2e/test_registry_newest.py::test_a_start_without_a_schema_says_so",
    ),
    (
        "requests behind one that waits for a schema come again", "native/predict/predictor.cpp",
        "            continue;   // comes again\n", "            {}\n",
        f"{_REGISTRY}::test_a_predictor_answers_what_it_can_read_meanwhile",
    ),
    (
        "no predictor is ready while a schema is waited for", "streamtrain/telemetry/predictor.py",
        ' and not event["waiting"]', "", "tests/test_telemetry.py::test_not_ready_while_a_schema_is_waited_for",
    ),
    (
        "that a schema came is told, whoever asked", "streamtrain/schemas.py",
        "        self._came |= name in self._open\n", "",
        f"{_REGISTRY}::test_that_a_schema_came_is_told_whoever_asked",
    ),
    (
        "a round's schemas are in its log", "native/train/slot_filler.h",
        "        if (!schema.name) return;\n", "        return;\n",
        f"{_REGISTRY}::test_writers_of_several_schemas",
    ),
    (
        "a record that goes on in the next round has its schema in that one's log too", "native/train/slot_filler.cpp",
        "    noted_schema_ = {};\n", "",
        f"{_REGISTRY}::test_every_log_tells_the_schemas_of_its_own_rounds",
    ),
    (
        "fields of a record within the row are no step of the row's own", "native/decode/avro_program.h",
        "return op.nested == (nested_ > 0) && (!op.nested || op.field == field_);", "return true;",
        f"{_AVRO}::test_a_cut_behind_a_record_is_in_the_rows_own_field",
    ),
    (
        "a record that no column has a cell of is null", "native/decode/formats/avro_encoder.h",
        "        if (!is_null) put_fields(table, row, *record, node);\n",
        "        put_fields(table, row, *record, node);\n",
        f"{_AVRO}::test_columns_within_records_are_told_at_load_and_written",
    ),
]
