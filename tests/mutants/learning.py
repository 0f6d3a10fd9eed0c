"""Guards of standardising and of the batches' growth."""

_MOMENTS = "tests/exec/test_moments.py::"
_WRONG_CELL = _MOMENTS + "test_one_wrong_cell_moves_mean_and_deviation_by_less_than_a_twentieth"

GUARDS = [
    (
        "a value outside the reach is held back",
        "native/kernels/moments.h",
        "held = raw < column.low ? column.low : raw > column.high ? column.high : raw;",
        "held = raw;",
        _WRONG_CELL,
    ),
    (
        "the first round is held to its median",
        "native/exec/first_moments.cpp",
        "    if (spread > 0) return clip * MAD_OF_NORMAL * spread;\n",
        "    if (spread > 0) return beyond_any;\n",
        _WRONG_CELL,
    ),
    (
        "one value does not show that a column varies",
        "native/exec/first_moments.cpp",
        "    if (distances.size() < 2) return 0;\n",
        "    if (distances.size() < 1) return 0;\n",
        _WRONG_CELL,
    ),
    (
        "what comes again and again is no outlier",
        "native/base/moments.h",
        "(deviation > 0 ? column.clip * deviation : column.least) * sqrt(1 + column.outside)",
        "(deviation > 0 ? column.clip * deviation : column.least)",
        _WRONG_CELL,
    ),
    (
        "a constant column begins to vary by its nearest value",
        "native/base/moments.h",
        "(deviation > 0 ? column.clip * deviation : column.least)",
        "(deviation > 0 ? column.clip * deviation : 0)",
        _WRONG_CELL,
    ),
    (
        "a shift is no outlier",
        "native/memory/average.cpp",
        "    bool moved = most && round.outside >= LEAST_MOVED;\n",
        "    bool moved = false;\n",
        _WRONG_CELL,
    ),
    (
        "one value of a round of one is no shift",
        "native/memory/average.cpp",
        "    bool moved = most && round.outside >= LEAST_MOVED;\n",
        "    bool moved = most;\n",
        _MOMENTS + "test_a_wrong_cell_alone_in_its_round_is_held_back_too",
    ),
    (
        "a first round that was wrong is outnumbered",
        "native/memory/average.cpp",
        "    if (most && round.outside > column.count) {\n",
        "    if (false) {\n",
        _MOMENTS + "test_what_was_wrong_from_the_start_is_outnumbered",
    ),
    (
        "moments forget by their half-life",
        "native/memory/average.cpp",
        "    if (column.half_life > 0) {\n",
        "    if (false) {\n",
        _MOMENTS + "test_a_half_life_forgets",
    ),
    (
        "a deviation below the floor only centres",
        "native/base/moments.h",
        "    return deviation < least_deviation || deviation < abs(column.mean) * float_spacing ? 0 : deviation;\n",
        "    return deviation;\n",
        _MOMENTS + "test_a_deviation_that_float32_cannot_divide_by_only_centres",
    ),
    (
        "the model sees at most the clip",
        "native/kernels/standardize.h",
        "            z = z > clip ? clip : z;\n",
        "",
        "tests/compute/test_ops.py",
    ),
    (
        "a run that goes on has the batches of its lineage's age",
        "native/exec/slot_filler.cpp",
        "    rows_before_ = arena_.control().coordinator.rows_seen.load();\n",
        "    rows_before_ = 0;\n",
        "tests/exec/test_batch_growth.py::test_a_run_that_goes_on_has_the_batches_of_a_lineage_of_its_age",
    ),
    (
        "a model begins as the constant prediction",
        "compute/losses/_scores.py",
        '    builder.call("add_offset", builder.rows, z.shape[1], offset, z)\n',
        "",
        "tests/compute/test_model.py::test_a_fresh_model_predicts_what_the_constant_prediction_knows",
    ),
    (
        "a loss says what its label is",
        "compute/losses/__init__.py",
        "    kind: LabelKind = get(loss).LABEL\n",
        "    kind: LabelKind = \"binary\" if loss == \"binary_cross_entropy\" else \"number\"\n",
        "tests/regress/test_0240_a_copied_loss_file.py",
    ),
    (
        "digits that are no number stay text",
        "streamtrain/cli/infer.py",
        "    if column.numeric and not column.boolean and not column.coded:\n",
        "    if column.numeric and not column.boolean:\n",
        "tests/cli/test_init.py::test_times_and_codes",
    ),
    (
        "an id is nothing to learn from",
        "streamtrain/cli/infer.py",
        "    if column.identifies:\n",
        "    if False:\n",
        "tests/cli/test_init.py::test_what_nothing_can_be_learned_from_is_left_out",
    ),
]
