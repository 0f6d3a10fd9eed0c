"""Guards of what the pages show."""

FIGURES = "tests/ui/test_block_figures.py"
EXAMINED = "tests/ui/test_examined.py"
LINEAGE = "tests/ui/test_lineage_page.py"

GUARDS = [
    (
        "a norm of sampled rows is that of the whole block",
        "streamtrain/ui/block_figures.py",
        "norm=float(np.sqrt((values**2).mean() * whole)),",
        "norm=float(np.sqrt((values**2).sum())),",
        f"{FIGURES}::test_a_large_block_is_sampled_and_says_so",
    ),
    (
        "a row is touched that any part of the optimizer's state tells of",
        "streamtrain/ui/block_figures.py",
        "    seen = np.any([(each",
        "    seen = np.all([(each",
        f"{FIGURES}::test_rows_of_a_table_that_were_touched",
    ),
    (
        "updates that go their own ways add up by the root of their number",
        "streamtrain/ui/block_figures.py",
        "return self.magnitude / math.sqrt(max(1, self.updates))",
        "return self.magnitude / max(1, self.updates)",
        f"{FIGURES}::test_a_step_of_a_size_lies_between_the_two",
    ),
    (
        "snapshots of two lineages are not compared",
        "streamtrain/ui/examined.py",
        "if one is None or other is None or one.lineage != other.lineage:",
        "if one is None or other is None:",
        f"{EXAMINED}::test_lineages_are_not_compared",
    ),
    (
        "figures of a job that began anew are not taken for the new one's",
        "streamtrain/ui/examined.py",
        "if known is not None and known.digest != found.digest:",
        "if False:",
        f"{EXAMINED}::test_a_job_begun_anew_forgets_the_old_one",
    ),
    (
        "values of snapshots that were looked into are bounded",
        "streamtrain/ui/examined.py",
        "            if sum(sizes.values()) > self._most_bytes:\n",
        "            if False:\n",
        f"{EXAMINED}::test_values_are_dropped_and_figures_stay",
    ),
    (
        "what the topic has is not dropped, to be read again at once",
        "streamtrain/ui/examined.py",
        "if version not in {*staying, *held}]",
        "if version not in staying]",
        f"{EXAMINED}::test_figures_are_of_so_many_and_of_those_that_are_held",
    ),
    (
        "a version is a whole number among headers",
        "streamtrain/ui/tracing.py",
        r're.compile(r"\bversion\W{1,6}?(?:b\W)?(\d{1,18})\b")',
        r're.compile(r"version\W{1,6}?(?:b\W)?(\d{1,18})")',
        f"{LINEAGE}::test_headers_that_tell_less",
    ),
    (
        "the newest rows are those before the topic's end",
        "streamtrain/ui/sampling.py",
        "last.append((max(low + records, end - records), end))",
        "last.append((low + records, low + 2 * records))",
        "tests/ui/test_data_page.py::test_both_ends_and_nothing_between",
    ),
    (
        "records of many rows count as many",
        "streamtrain/ui/sampling.py",
        "records = max(1, ROWS // max(1, len(held)) // in_record)",
        "records = max(1, ROWS // max(1, len(held)))",
        "tests/ui/test_data_page.py::test_records_of_many_rows_are_fewer",
    ),
    (
        "a log is looked for by the offset behind what was found too early",
        "streamtrain/kafka/round_logs.py",
        "                begin = found.offset + 1\n",
        "                begin = found.offset + 4\n",
        f"{LINEAGE}::test_the_first_log_of_those_that_are_wanted",
    ),
    (
        "a verification ends when it is told to",
        "streamtrain/ui/verifying.py",
        "        if self._stop.is_set():\n",
        "        if False:\n",
        f"{LINEAGE}::test_a_verification_can_be_stopped_and_says_what_is_wrong",
    ),
    (
        "a digest of another snapshot is not that of the version",
        "streamtrain/ui/pages/lineage.py",
        "if traced.digest is not None and traced.digest.hex() == pasted.digest:",
        "if traced.digest is not None:",
        f"{LINEAGE}::test_a_prediction_is_traced",
    ),
]
