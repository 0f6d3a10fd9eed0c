"""Guards of columns, kinds and formats."""

_TEXTS = "tests/columns/test_text_cells.py"
_SOUND = "tests/columns/test_audio.py"
_BLOCKS = "tests/columns/test_packed_blocks.py::test_rows_by_blocks_are_rows_one_by_one"
_PACKED_LISTS = "tests/columns/test_packed_lists.py"

GUARDS = [
    (
        "of a damaged JPEG OpenCV decides", "streamtrain/columns/pictures.py",
        "            pass  # it takes no JPEG", "            return None  # it takes no JPEG",
        "tests/columns/test_image.py::test_a_jpegs_points_are_opencvs",
    ),
    (
        "small cells do not wait for each other's threads", "streamtrain/columns/media.py",
        "    if parts < 2 or sum(map(len, encoded)) < SMALL * count:", "    if parts < 2:",
        "tests/columns/test_media.py::test_small_cells_are_decoded_by_who_asks",
    ),
    (
        "a match that is preferred ends those behind it", "native/decode/transforms/extract.h",
        "break;   // those behind it are not preferred", "",
        "tests/columns/test_patterns.py::test_native_and_slow_agree_on_generated_patterns",
    ),
    (
        "a step is reached once at a place", "native/decode/transforms/extract.h",
        "if (threads.reached[each.at] == threads.place) continue;", "",
        "tests/columns/test_patterns.py::test_time_is_linear",
    ),
    (
        "transforms see a stand-in where it stands", "native/decode/block_transforms.h",
        "std::memset(rows.cells->columns[k].given.data(), 1, rows.count);", "",
        "tests/regress/test_0492_stand_ins_in_slots.py",
    ),
    (
        "a row that waits may still die", "native/decode/waiting_rows.h",
        "if (none_dies && block_.put_made(rows)) {", "if (block_.put_made(rows); none_dies) {",
        "tests/train/test_waiting_rows.py::test_a_cell_that_does_not_fit_ends_its_row_alone",
    ),
    (
        "a record's dead rows make one letter, in its place", "native/train/slot_filler.cpp",
        "if (!tally.dead_rows.empty() || !batch_.late().empty()) settle(tally);", "",
        "tests/train/test_waiting_rows.py",
    ),
    (
        "a picture larger than allowed is not decoded", "native/decode/pictures.h",
        "width && height && width * height <= most_bytes / BYTES_OF_A_POINT", "width && height",
        "tests/columns/test_image.py::test_a_bomb_does_not_burst",
    ),
    (
        "a JPEG without its end is none", "native/decode/pictures.h",
        'return "a JPEG that is cut short";', "return {};",
        "tests/columns/test_image.py::test_what_is_no_picture_is_a_dead_letter",
    ),
    (
        "pictures of records that come together are decoded together", "native/decode/batch_filler.h",
        "if (ahead_) ahead_->look(records, count);", "",
        "tests/columns/test_image.py::test_a_picture_is_decoded_once_for_all_rows_of_some_records",
    ),
    (
        "a clip larger than allowed is not decoded", "native/decode/sounds.h",
        "head.count && head.count <= bounds.most_bytes / BYTES_OF_A_SAMPLE / head.channels", "head.count",
        f"{_SOUND}::test_a_bomb_does_not_burst",
    ),
    (
        "a FLAC from a pipe ends where its last frame does", "native/decode/flac_frames.h",
        "if (crc<16>(frames.substr(at, end - at), 0x8005) != told) continue;", "",
        f"{_SOUND}::test_native_and_slow_agree_cut_at_every_byte_and_mutated",
    ),
    (
        "a FLAC that tells no length is decoded as one that does", "streamtrain/columns/sounds.py",
        "    raw = counted(raw)\n", "", f"{_SOUND}::test_a_flac_written_to_a_pipe_is_as_long_as_its_frames",
    ),
    (
        "an RF64's samples are as long as its first chunk says", "native/decode/sounds.h",
        "is_long ? little(bytes.data() + 28, 8) : static_cast<u64>(end - p)", "static_cast<u64>(end - p)",
        f"{_SOUND}::test_what_is_no_clip_is_a_dead_letter",
    ),
    (
        "a clip of another rate is none", "native/decode/sounds.h",
        'if (head.rate != bounds.rate) return "one of " + std::to_string(head.rate);', "",
        f"{_SOUND}::test_what_is_no_clip_is_a_dead_letter",
    ),
    (
        "a sample is a number", "streamtrain/columns/sounds.py",
        "in_16_bits or np.abs(wave).max() <= LOUDEST", "True",
        f"{_SOUND}::test_what_is_no_clip_is_a_dead_letter",
    ),
    (
        "an odd number of stages begins with one alone", "native/kernels/log_mel.h",
        "if (stages & 1) mel_stage_of_pairs(half, own);", "",
        f"{_SOUND}::test_features_are_log_energies_by_bands",
    ),
    (
        "an entry of words is not longer than the text", "native/decode/kinds/text.h",
        "size <= longest_ && first + size <= count", "size <= longest_ && first + size <= count + 1",
        "tests/columns/test_text.py::test_a_text_is_its_entries_hashed",
    ),
    (
        "a code point of no word ends a word", "native/decode/kinds/text.h",
        "within = belongs;", "within |= belongs;",
        "tests/columns/test_text.py::test_generated_texts",
    ),
    (
        "an index out of range is no index", "native/decode/kinds/sparse.h",
        "if (index < buckets_ && (!negative || index == 0)) return take_index",
        "if (!negative || index == 0) return take_index",
        "tests/columns/test_sparse.py::test_what_is_no_such_pair_is_a_dead_letter",
    ),
    (
        "a pair has both its parts", "native/decode/kinds/sparse.h",
        'if (row.taken() != 2 * row.elements()) row.wrong(c, "a missing value");', "",
        "tests/columns/test_sparse.py::test_what_is_no_such_pair_is_a_dead_letter",
    ),
    (
        "a list longer than its column says is no row", "native/decode/list_kind.h",
        "if (count > most && !cuts)", "if (false)",
        "tests/columns/test_lists.py::test_a_list_that_is_too_long_is_refused_or_cut",
    ),
    (
        "a vector has all its numbers", "native/decode/kinds/vector.h",
        "if (row.elements() == size_ && row.taken() == size_)", "if (row.elements() == size_)",
        "tests/columns/test_lists.py::test_what_is_no_such_list_is_a_dead_letter",
    ),
    (
        "a vector of a packed record is finite", "native/decode/kinds/vector.h",
        "return odd == 0;", "return true;",
        "tests/columns/test_lists.py::test_what_is_not_finite_or_of_another_size_is_a_dead_row_of_a_packed_record",
    ),
    (
        "a list of categories is no sign of columns", "native/decode/formats/json.h",
        "first_known && !takes_list && ", "first_known && ",
        "tests/columns/test_lists.py::test_a_list_is_its_categories_hashed",
    ),
    (
        "a row that waits is not passed by one that a missing cell ends", "native/decode/columnar_decoder.h",
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
        "hashes of another column are none of this one's", "native/decode/kinds/category.h",
        "span.seed == hasher_.seed && ", "", f"{_BLOCKS}[dead_letter-category]",
    ),
    (
        "a hash of another column is refused in its row", "native/decode/kinds/category.h",
        '        else if (hash.by.seed != hasher_.seed) row.wrong(c, "the hash of another column");\n', "",
        "tests/columns/test_packed_blocks.py::test_a_hash_is_as_good_as_its_text[64-1000]",
    ),
    (
        "a list of a packed record has a byte for each cell", "native/decode/packed_column.h",
        "if (count > size)", "if (false)",
        f"{_PACKED_LISTS}::test_lists_longer_than_their_bytes_are_answered_at_once[fixed]",
    ),
    (
        "a missing list of a packed record is what its column says", "native/decode/kinds/category.h",
        "const bool gone = missing.has(i);", "const bool gone = false;",
        f"{_PACKED_LISTS}::test_rows_are_those_of_json[1024-value]",
    ),
    (
        "lists of a packed record end where the slot has no more room", "native/decode/kinds/category.h",
        " || end + count > to.capacity) return false;", ") return false;",
        f"{_PACKED_LISTS}::test_rows_are_those_of_json[64-full]",
    ),
    (
        "the remainder of 64 bits is below the buckets", "native/decode/kinds/category.h",
        "rest - (buckets_ & (0 - u64{rest >= buckets_}))", "rest",
        "tests/columns/test_packed_blocks.py::test_a_hash_is_as_good_as_its_text[64-1000]",
    ),
    (
        "what lies in a missing cell counts for nothing", "native/decode/columnar_decoder.h",
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
        "a missing cell that ends its row does so in a block", "native/decode/columnar_decoder.h",
        "ended |= column->nulls_of(row, count);", "ended |= column->nulls_of(row, 0);",
        f"{_BLOCKS}[skip-category]",
    ),
    (
        "an empty word is a missing cell", "native/decode/column_span.h",
        "column.missing == Missing::value ? column.kind->stand_in_word() : EMPTY",
        "column.kind->stand_in_word()", f"{_BLOCKS}[skip-category]",
    ),
    (
        "an empty text is a missing cell", "native/decode/columnar_decoder.h",
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
        "if not ours and", "if False and",
        "tests/columns/test_kinds.py::test_a_setting_of_another_kind_is_a_mistake",
    ),
    (
        "a number too small for float32 stays what it is in a packed record", "streamtrain/columns/formats/packed.py",
        "return array if ((narrow == 0) != (array == 0)).any() else narrow", "return narrow",
        "tests/columns/test_bad_input.py::test_a_row_weight_below_0_or_no_number_is_a_dead_letter",
    ),
    (
        "a block that no column gives holds its constant", "native/decode/columnar_decoder.h",
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
        "block is not None and not block.ragged and", "block is not None and",
        "tests/compute/test_byte_blocks.py::test_a_block_of_another_form_is_refused",
    ),
    (
        "what is around a record is not looked for in it", "native/decode/decode_plan.cpp",
        "plan->wanted.push_back(column.kind && column.in_record());",
        "plan->wanted.push_back(column.kind != nullptr);",
        "tests/columns/test_around.py::test_what_is_around_a_record_is_not_looked_for_in_it[json]",
    ),
    (
        "what is around a record is not written into it", "native/bindings/python_table.h",
        "names_[nb::str(column.name.c_str())] = column.from.empty() ? c : NOWHERE;",
        "names_[nb::str(column.name.c_str())] = c;",
        "tests/columns/test_encode.py::test_dicts_are_encoded_as_python_does",
    ),
    (
        "rows that differ in what is around them share no record", "streamtrain/columns/records.py",
        "        if len(groups) == 1:\n", "        if groups:\n",
        "tests/columns/test_own.py::test_rows_share_a_record_where_all_around_is_the_same[json]",
    ),
    (
        "rows are sent again with all that stood around them", "streamtrain/clients/dead_letters.py",
        'bytes(message.value or b""), message.key, message.headers', 'bytes(message.value or b""), key, headers',
        "tests/e2e/test_dead_letters.py::"
        "test_what_stood_around_a_record_and_found_no_place_in_its_letter_is_sent_again",
    ),
    (
        "rows of a batch are sent again each with the key of its record", "streamtrain/clients/dead_letters.py",
        "parts += [_part(message.key, message.headers, rows)] if rows",
        "parts += [Part(rows, letter.key, letter.headers)] if rows",
        "tests/e2e/test_dead_letters.py::test_a_batch_that_was_left_out_is_sent_from_its_records",
    ),
    (
        "what is around a record counts in its message", "streamtrain/columns/records.py",
        "first, spare_bytes + own.bytes)", "first, spare_bytes)",
        "tests/columns/test_own.py::test_what_is_around_counts_in_a_message",
    ),
    (
        "array rows have no place for what is around the record", "native/decode/decode_plan.cpp",
        "        if (column.in_record()) plan->array_columns", "        plan->array_columns",
        "tests/columns/test_around.py::test_examples_in_messages[json-1]",
    ),
    (
        "a run of numbers ends where one is not in the record", "native/decode/row_writer.h",
        "sees_all = plan_->watch || !column.from.empty();", "sees_all = plan_->watch != nullptr;",
        "tests/columns/test_around.py::test_floats_of_an_array_row_pass_over_them",
    ),
    (
        "a key that is not UTF-8 is no text", "native/decode/around_cells.h",
        "cell.good = !cell.is_text || is_utf8(cell.text);", "cell.good = true;",
        "tests/columns/test_around.py::test_examples_in_messages[json-4]",
    ),
    (
        "a text around a record is parsed where a number is meant", "streamtrain/columns/column.py",
        "if problem is None and holds_text(self.around) and not self.entry.takes_text(self):", "if False:",
        "tests/columns/test_around.py::test_mistakes_are_named",
    ),
    (
        "a message's time is in milliseconds", "streamtrain/columns/column.py",
        "if self.around == TIMESTAMP and getattr", "if False and getattr",
        "tests/columns/test_around.py::test_mistakes_are_named",
    ),
    (
        "the rows of a program are in no message", "streamtrain/fitting/memory_run.py",
        "native_plan(job.schema.without_message(), arena.slot_layout)", "native_plan(job.schema, arena.slot_layout)",
        "tests/fitting/test_fit.py::test_columns_from_a_message_are_fields",
    ),
    (
        "replay reads what is around a record", "native/train/log_filler.cpp",
        "batch_.begin(records[i],", "batch_.begin({.value = records[i].value, .size = records[i].size},",
        "tests/e2e/test_around.py::test_the_bits_are_those_of_fields_whoever_is_killed",
    ),
    (
        "verify reads what is around a record", "streamtrain/checks/verify/decoding.py",
        " if reads_around else None\n", " if False else None\n",
        "tests/e2e/test_around.py::test_a_cell_around_that_does_not_fit_is_a_dead_letter",
    ),
    (
        "a request's message is read as a record's", "native/predict/predictor.cpp",
        "records_.push_back(record_of(view));",
        "records_.push_back({.value = view.value, .size = view.size});",
        "tests/e2e/test_around.py::test_the_bits_are_those_of_fields_whoever_is_killed",
    ),
    (
        "a quote that is never closed ends the record", "native/decode/csv_text.h",
        "                return nullptr;\n", "                return text = {}, bad = nullptr, end();\n",
        "tests/columns/test_csv.py::test_what_is_said_of_bad_rows",
    ),
    (
        "nothing stands behind a closing quote", "native/decode/csv_text.h",
        "        bad = \"text behind a closing quote\";\n", "",
        "tests/columns/test_csv.py::test_what_is_said_of_bad_rows",
    ),
    (
        "a line has as many cells as there are columns", "native/decode/formats/csv.h",
        "if (cell != end || more) wrong_count", "if (cell != end) wrong_count",
        "tests/columns/test_csv.py::test_what_is_said_of_bad_rows",
    ),
    (
        "a header is compared to its end", "native/decode/formats/csv.h",
        "csv_.stop()(p[size]) && p[size] != delimiter_) {", "true) {",
        "tests/columns/test_csv.py::test_a_header_is_that_of_its_record",
    ),
    (
        "a line that would hold nothing holds quotes", "native/decode/formats/csv_encoder.h",
        "if (out.size() == start) out += quote_, out += quote_;", "",
        "tests/columns/test_csv.py::test_a_row_that_holds_nothing_is_one",
    ),
    (
        "a time in whole numbers is exact in CSV", "native/decode/time_kind.h",
        "else if (parse_whole(utf8, whole, negative)) integer", "else if (false) integer",
        "tests/columns/test_csv.py::test_texts_are_numbers_without_leave",
    ),
]
