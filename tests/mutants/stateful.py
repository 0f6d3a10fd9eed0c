"""Guards of transforms with state."""

_PLAN = "tests/compute/test_stateful.py::"
_FIT = "tests/fitting/test_stateful.py::"

GUARDS = [
    (
        "no row sees its own label", "compute/stateful/target_mean.py",
        "        builder.call(\n"
        '            "target_value", rows, *batch.place, buckets, to.shape[1], at, batch.x, base, base_all,\n'
        '            held.settings["prior"], to,\n'
        "        )\n"
        '        with builder.during(*STATISTICS):\n'
        '            builder.call("target_add", rows, *batch.place, buckets, batch.x, batch.label, '
        'batch.weight, share)\n'
        '            builder.call("target_add_all", rows, batch.label, batch.weight, share_all)\n',
        '        with builder.during(*STATISTICS):\n'
        '            builder.call("target_add", rows, *batch.place, buckets, batch.x, batch.label, '
        'batch.weight, share)\n'
        '            builder.call("target_add_all", rows, batch.label, batch.weight, share_all)\n'
        "        builder.call(\n"
        '            "target_value", rows, *batch.place, buckets, to.shape[1], at, batch.x, share, share_all,\n'
        '            held.settings["prior"], to,\n'
        "        )\n",
        _FIT + "test_a_rows_own_label_does_not_reach_it",
    ),
    (
        "a row sees the round's start", "compute/stateful/count.py", "cells, to.shape[1], at, form, batch.x, base, to)",
        "cells, to.shape[1], at, form, batch.x, share, to)",
        _PLAN + "test_a_row_sees_the_rounds_start",
    ),
    (
        "rows without weight are not counted", "native/kernels/count_table.h",
        "        if (!(weight_r[r] > 0)) continue;\n        ++count_c", "        ++count_c",
        _PLAN + "test_rows_without_weight_are_not_gathered",
    ),
    (
        "rows without weight have no label", "native/kernels/target_table.h",
        "weight_r[r] > 0 ? f64(weight_r[r]) * value : 0.0", "f64(weight_r[r]) * value",
        "tests/compute/test_model.py::test_a_batch_without_weight_changes_nothing",
    ),
    (
        "a bucket that was never seen is as all rows", "native/kernels/target_table.h",
        "total > 0 ? (seen[1]", "true ? (seen[1]",
        "tests/compute/test_ops.py::test_every_instruction_set_agrees_with_the_reference",
    ),
    (
        "what has state is read by no transform", "streamtrain/columns/pipeline.py",
        "if made.feeds is None:", "if True:", _FIT + "test_mistakes_are_told",
    ),
    (
        "an edge lies within its cell", "native/state/rules/quantiles.h",
        "before + cells[cell] < rank", "before + cells[cell] <= rank", "tests/state/test_rules.py::"
        "test_a_mean_is_what_the_rule_means",
    ),
    (
        "a worker that has seen nothing has no extremes", "native/state/rules/extremes.h",
        "            if (!(share[c].count > 0)) continue;\n", "",
        "tests/state/test_rules.py::test_a_mean_is_what_the_rule_means",
    ),
    (
        "both sides of a sum that forgets come to one time", "native/state/rules/decayed.h",
        "its = kept_over(epoch - share[0])", "its = kept_over(0)",
        "tests/state/test_rules.py::test_a_mean_is_what_the_rule_means",
    ),
    (
        "a clock that wrong times moved goes back", "native/state/rules/decayed.h",
        "if (newest > 0 && to[0] - newest > FORGOTTEN) ", "if (newest < 0) ",
        "tests/state/test_rules.py::test_a_mean_is_what_the_rule_means",
    ),
    (
        "a time far ahead of its batch counts as of the fence", "native/kernels/decayed.h",
        "return f64(newest - middle) > beyond ? middle + i64(beyond) : newest;", "return newest;",
        "tests/compute/test_ops.py::test_every_instruction_set_agrees_with_the_reference",
    ),
    (
        "a row older than the newest counts less", "native/kernels/decayed.h",
        "exp((position - table_tk[0]) * decayed_ln2)", "exp((position - epoch) * decayed_ln2)",
        "tests/compute/test_ops.py::test_every_instruction_set_agrees_with_the_reference",
    ),
    (
        "a value has an id once it was counted so often", "native/state/rules/vocabulary.h",
        "its.count >= head_.admit && ", "", "tests/state/test_rules.py::test_a_mean_is_what_the_rule_means",
    ),
    (
        "what is forgotten leaves zeros", "native/state/rule.cpp",
        "if (its.rows_of == block.name) zero_rows(", "if (false) zero_rows(",
        "tests/state/test_rows_of.py::test_the_rows_of_what_is_forgotten_are_zero_in_every_block_that_is_its",
    ),
    (
        "moments of each worker are zeroed", "native/state/rule.cpp",
        "block.rule->per_worker ? workers : 1", "block.rule->per_worker ? workers - workers + 1 : 1",
        "tests/state/test_rows_of.py::test_the_rows_of_what_is_forgotten_are_zero_in_every_block_that_is_its",
    ),
    (
        "a wrong time forgets nothing", "native/state/rules/vocabulary.h",
        "(times.size() - 1) / 2", "times.size() - 1", _FIT.replace("stateful", "vocabulary") +
        "test_a_few_wrong_times_forget_nothing",
    ),
    (
        "a share's values do not depend on the workers", "native/kernels/vocabulary.h",
        "            if (vocabulary_holds(its.hash, known.head().rounds, head.shift) || known.find(its.hash))\n", "",
        _FIT.replace("stateful", "vocabulary") + "test_a_vocabulary_does_not_depend_on_the_number_of_workers",
    ),
]
