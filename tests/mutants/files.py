"""Guards of files of rows, of what is made of them, and of topics that are packed again."""

_READING = "tests/files/test_reading.py"
_WRITING = "tests/files/test_writing.py"
_SUMMARY = "tests/analysis/test_summary.py"
_SEEN = "tests/files/test_seen_rows.py::test_it_is_what_the_model_is_given"
_ORIGIN = "tests/origins/test_files_origin.py"
_REPACKING = "tests/clients/test_repacking.py"

GUARDS = [
    (
        "a line that is cut short waits for its rest", "native/bindings/python_csv.h",
        "            if (p == csv_.end() && !last) break;\n", "", f"{_READING}::test_every_form_gives_the_same_cells",
    ),
    (
        "a line has a cell for each name", "native/bindings/python_csv.h",
        "if (cells != order.size())", "if (false)", f"{_READING}::test_mistakes_name_the_file_and_the_row",
    ),
    (
        "what is no finite number stays the text it is", "native/bindings/python_csv.h",
        "parse_decimal(text, value) && std::isfinite(value)", "parse_decimal(text, value)",
        f"{_READING}::test_csv_by_native_code_is_what_it_is_row_by_row",
    ),
    (
        "what says that a number is missing is no wrong number", "native/bindings/python_csv.h",
        " || is_missing(trimmed(text))", "", f"{_READING}::test_csv_by_native_code_is_what_it_is_row_by_row",
    ),
    (
        "no more rows are read than were asked for", "streamtrain/files/blocks.py",
        "self._left -= rows", "pass", f"{_READING}::test_every_form_gives_the_same_cells",
    ),
    (
        "a file that is not whole is not there", "streamtrain/files/writing.py",
        "stack.callback(_removed, beside)", "pass", f"{_WRITING}::test_a_file_is_there_whole_or_as_it_was",
    ),
    (
        "what feeds a transform with state lies in a block apart", "streamtrain/columns/row_plan.py",
        "fed.get(name) or ", "", _SEEN,
    ),
    (
        "each transform with state makes its own of a slot", "compute/seen.py",
        "numbers += own", "pass", _SEEN,
    ),
    (
        "an empty text is no word", "streamtrain/analysis/summary.py",
        "column.add(cells[cells != self._missing_words[name]])", "column.add(cells)",
        f"{_SUMMARY}::test_every_kind_of_column",
    ),
    (
        "a missing cell is a bin of drift", "streamtrain/analysis/summary.py",
        "[*each, of.rows - of.there]", "[*each, 0]",
        f"{_SUMMARY}::test_drift_counts_missing_cells_and_other_words",
    ),
    (
        "positions go out with the rows", "streamtrain/clients/repacking.py",
        "once.move(self._source, native.positions, group,",
        "once.move(self._source, [(at, 0) for at, _ in native.positions], group,",
        f"{_REPACKING}::test_rows_are_packed_under_their_keys",
    ),
    (
        "what is not written as a whole is aborted", "streamtrain/kafka/once.py",
        'self.native.abort("not all of it was written")', "self.native.commit(*self._offsets)",
        f"{_REPACKING}::test_each_row_is_written_once_whatever_ends_it",
    ),
    (
        "a transaction that may be committed or not is not taken for one that is", "streamtrain/kafka/once.py",
        "if ended.ending is not KafkaEnding.COMMITTED:", "if False:",
        "tests/kafka/test_once.py::test_who_goes_on_from_its_position_writes_once[commit_transaction=3!-1]",
    ),
    (
        "a start waits for what a call may be made again for", "streamtrain/kafka/once.py",
        "if not again or time.monotonic() > until_s:", "if True:",
        "tests/kafka/test_once.py::test_who_goes_on_from_its_position_writes_once"
        "[init_transactions=1&,init_transactions=2&-0]",
    ),
    (
        "rows of a key stay in their order, whatever their headers", "native/repack/repacker.cpp",
        "&& groups_[found->second].headers == headers_", "",
        "tests/e2e/test_repacking.py::test_killed_again_and_again",
    ),
    (
        "a row that is kept has no cell of another", "native/decode/kept_rows.h",
        "cell(c).kind = CellKind::missing;", "(void)cell(c);",
        f"{_REPACKING}::test_a_dead_rows_cells_stay_its_own",
    ),
    (
        "of a cell given twice the last is kept, which is missing", "native/decode/row_writer.h",
        "if (watch_) [[unlikely]] watch_->missing(c);", "",
        f"{_REPACKING}::test_a_dead_rows_cells_stay_its_own",
    ),
    (
        "who keeps cells sees those of whole columns", "native/decode/columnar_decoder.h",
        "fast_ = !plan_->watch && ", "fast_ = ",
        f"{_REPACKING}::test_every_format_is_packed",
    ),
    (
        "positions count for the two topics that they were made of", "streamtrain/clients/repacking.py",
        "or done[partition] != own[partition]:", "or False:",
        "tests/e2e/test_repacking.py::test_a_target_made_anew_is_no_more_the_one_that_was_written",
    ),
    (
        "a reading of a file begins where a record does", "streamtrain/files/placed.py",
        "if at < begin < at + record.rows:", "if False:",
        f"{_ORIGIN}::test_records_have_the_same_places_wherever_reading_begins",
    ),
    (
        "a file that was written to is another", "streamtrain/files/found.py",
        "if stamp_of(self.path) != self.stamp:", "if False:", f"{_ORIGIN}::test_what_is_found",
    ),
    (
        "no file is trained twice", "streamtrain/origins/files.py",
        "if told.digest in read:", "if False:",
        f"{_ORIGIN}::test_what_would_be_trained_twice_or_not_at_all_is_refused",
    ),
    (
        "files are left at their ends", "streamtrain/origins/files.py",
        "if first_unfinished(known, seen) is None or accept_gap:", "if True:",
        f"{_ORIGIN}::test_what_would_be_trained_twice_or_not_at_all_is_refused",
    ),
    (
        "a topic comes after the last row of files", "streamtrain/origins/files.py",
        "if left is not None and not accept_gap:", "if False:", f"{_ORIGIN}::test_a_topic_comes_after_the_last_row",
    ),
    (
        "more files are as many as are told", "streamtrain/checks/verify/frontier.py",
        "if now == count + len(files):", "if True:",
        f"{_ORIGIN}::test_more_files_are_passed_where_they_are_as_many_as_told",
    ),
]
