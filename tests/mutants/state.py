"""Guards of a state's rules and its layout."""

_RULES = "tests/state/test_rules.py::"
_MEAN = _RULES + "test_a_mean_is_what_the_rule_means"
_BEGIN = _RULES + "test_a_round_begins_from_the_start_as_often_as_it_does"
_LAYOUT = "tests/state/test_layout.py::"

GUARDS = [
    (
        "a worker's part of the mean is its weight", "native/state/rules/learned.h",
        "worker.weight_sum / all.weight_sum", "1.0 / static_cast<f64>(all.workers.size())", _MEAN,
    ),
    (
        "the mean adds in worker order", "native/state/mean.cpp",
        "(p * static_cast<f64>(a[i]) + q * static_cast<f64>(b[i])) + r * static_cast<f64>(c[i])",
        "(p * static_cast<f64>(a[i]) + r * static_cast<f64>(c[i])) + q * static_cast<f64>(b[i])",
        _RULES + "test_the_workers_are_added_in_their_order",
    ),
    (
        "without a trained worker the start stays", "native/state/rules/learned.h",
        "    if (vectors.empty()) std::memcpy(mean + block.offset, start.mean + block.offset, block.bytes());\n",
        "    if (vectors.empty()) return;\n", _RULES + "test_a_round_without_a_row_changes_nothing_that_is_learned",
    ),
    (
        "what is local stays with its worker", "native/state/rules/local.h",
        "std::memcpy(mean + block.in_mean(worker), ", "std::memcpy(mean + block.in_mean(0), ", _MEAN,
    ),
    (
        "a worker begins with its own", "native/state/parts.h",
        "start.mean + block.in_mean(own.worker)", "start.mean + block.in_mean(0)", _BEGIN,
    ),
    (
        "what is local is published once a worker", "native/state/rules/local.h",
        "worker < workers; ++worker", "worker < 1; ++worker",
        _LAYOUT + "test_a_mean_buffer_holds_a_state_and_then_what_each_worker_keeps",
    ),
    (
        "a sum goes on from the start", "native/state/rules/sum.h",
        "(T a, T b) { return a + b; }", "(T, T b) { return b; }", _MEAN,
    ),
    (
        "a block is stored as it says", "native/state/layout.cpp", "if (spec.dtype == name_of(dtype)) return dtype;",
        "if (spec.dtype == name_of(dtype)) return *rule.dtypes.begin();",
        "tests/state/test_layout.py::test_blocks_lie_one_behind_the_other_the_learned_part_first",
    ),
    (
        "the arena tells how a block is stored", "native/ring/arena.cpp", "r.rows_of, r.dtype}", "r.rows_of, {}}",
        "tests/state/test_layout.py::test_a_process_that_attaches_finds_the_same_layout",
    ),
    (
        "steps count from the base on", "native/state/rules/highest.h",
        "base[i] + steps", "steps", _RULES + "test_steps_count_from_the_base_on",
    ),
    (
        "the highest count stays", "native/state/rules/highest.h", "return std::max(a, b);", "return b;",
        _RULES + "test_steps_count_from_the_base_on",
    ),
    (
        "a share is gathered from zero", "native/state/parts.h",
        "    std::memset(own.share + block.part_offset, 0, block.bytes());\n", "", _BEGIN,
    ),
    (
        "a base is the start's", "native/state/parts.h",
        "    std::memcpy(own.base + block.part_offset, start.mean + block.offset, block.bytes());\n", "", _BEGIN,
    ),
    (
        "moments are gathered from zero", "native/state/rules/moments.h",
        "    std::memset(own.share + block.part_offset, 0, block.bytes());\n", "", _BEGIN,
    ),
    (
        "a first round begun again keeps its pass", "native/state/rules/moments.h",
        "start.first_moments ? start.first_moments + block.part_offset : start.mean + block.offset;",
        "start.mean + block.offset;",
        "tests/train/test_rounds.py::test_a_first_round_begun_again_is_standardised_by_its_pass",
    ),
    (
        "a first round counts once", "native/state/rules/moments.h",
        "        if (start.first_moments) to[c].clipped += round.clipped;\n        else fold_column(to[c], round);\n",
        "        fold_column(to[c], round);\n",
        "tests/train/test_rounds.py::test_statistics_are_those_of_all_rows_and_counted_once",
    ),
    (
        "blocks begin on cache lines", "native/state/layout.cpp",
        "        at += align64(block.bytes());\n", "        at += block.bytes();\n",
        _LAYOUT + "test_blocks_lie_one_behind_the_other_the_learned_part_first",
    ),
    (
        "a block has a name of its own", "native/state/layout.cpp",
        "if (!names.insert(spec.name).second)", "if (false)",
        _LAYOUT + "test_what_cannot_be_laid_out_is_refused",
    ),
    (
        "tensors are published as they lie", "native/state/layout.cpp",
        "    std::stable_sort(published.blocks.begin(), published.blocks.end(),\n"
        "                     [](const StateBlock &a, const StateBlock &b) { return a.offset < b.offset; });\n", "",
        _LAYOUT + "test_a_mean_buffer_holds_a_state_and_then_what_each_worker_keeps",
    ),
    (
        "a lineage begins with a whole state", "native/bindings/state.cpp", "if (buffer.size != bytes)", "if (false)",
        _LAYOUT + "test_a_lineage_begins_with_the_state_in_every_place",
    ),
    (
        "a block's name fits the arena", "native/ring/arena.cpp", "if (word.size() >= N)", "if (word.size() >= 2 * N)",
        _LAYOUT + "test_what_cannot_be_laid_out_is_refused",
    ),
    (
        "a block has no more axes than the arena keeps", "native/ring/arena.cpp",
        "    if (record.axes > std::size(record.shape))\n", "    if (false)\n",
        _LAYOUT + "test_what_cannot_be_laid_out_is_refused",
    ),
]
