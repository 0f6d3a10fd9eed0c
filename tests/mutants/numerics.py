"""Guards of the kernels, the scores and the row weights."""

GUARDS = [
    (
        "a bag of rows without weight leads nothing", "native/base/first_seen.h",
        "if (counts) seen.look(", "if (counts || rows > 0) seen.look(",
        "tests/compute/test_ops.py::test_every_instruction_set_agrees_with_the_reference[bag_lead--1000]",
    ),
    (
        "an entry whose slot is another bucket's is looked for", "native/base/first_seen.h",
        "for (u32 k = 0; k < others; ++k) {", "for (u32 k = 0; k < others / 2; ++k) {",
        "tests/compute/test_tables.py::test_the_first_of_each_bucket_leads",
    ),
    (
        "a gradient begins with what the leading entry says, -0 too", "native/kernels/bag.h",
        "& ~leads) | leads << 63", "& ~leads)",
        "tests/compute/test_tables.py::test_a_gradient_of_minus_0_stays_one",
    ),
    (
        "work goes up to the rows present", "native/plan/thread_calls.cpp",
        "static_cast<u64>(tile.rows) * cell.times",
        "static_cast<u64>((tile.rows + 7) / 8 * 8) * cell.times",
        "tests/compute/test_model.py::test_work_goes_up_to_the_rows_present",
    ),
    (
        "addresses in a table go with slot and tile", "native/plan/thread_calls.cpp",
        "in_slot ? argument.bits : cell, argument.row_bytes});", "in_slot ? argument.bits : cell, 0});",
        "tests/compute/test_address_tables.py::test_addresses_go_with_slot_tile_and_thread",
    ),
    (
        "what a chain needs lies in no two places", "compute/workspace.py",
        "made = list(launches([step]))", "made = list(flat([step]))",
        "tests/compute/test_fusion.py::test_what_a_chain_needs_lies_in_no_two_places",
    ),
    (
        "an element is the same to all calls of a chain", "compute/fusion.py",
        "return same and len(chain)", "return len(chain)",
        "tests/compute/test_fusion.py::test_what_is_not_elementwise_ends_a_chain",
    ),
    (
        "a strip begins where the one before ended", "native/plan/thread_calls.cpp",
        "*each.cell += by * each.element;", "*each.cell += 0 * by * each.element;",
        "tests/compute/test_fusion.py::test_it_changes_no_bit",
    ),
    (
        "a table's rows lie behind those before it", "native/kernels/embedding.h",
        "f64 *gradient_rd = gradient_ru + table.before * rows;", "f64 *gradient_rd = gradient_ru;",
        "tests/compute/test_model.py",
    ),
    (
        "no more rows than a slot has", "native/bindings/plan.cpp", "if (header->rows > plan.rows())", "if (false)",
        "tests/compute/test_model.py::test_a_slot_of_more_rows_than_the_plans_capacity_is_refused",
    ),
    (
        "a small negative weight is not 0", "native/decode/kinds/weight.h",
        "if (value < 0) return", "if (rounded < 0) return",
        "tests/columns/test_bad_input.py::test_a_row_weight_below_0_or_no_number_is_a_dead_letter",
    ),
    (
        "tiny weight sums", "native/base/share.h", "1.0 / step->weight_sum", "static_cast<f32>(1.0 / step->weight_sum)",
        "tests/compute/test_model.py::test_only_the_ratios_of_weights_matter",
    ),
    (
        "the loss of a NaN is one", "native/kernels/hinge.h", "short_of < 0 ? 0.0f : short_of",
        "larger(short_of, 0.0f)",
        "tests/compute/test_hostile.py::test_the_loss_of_a_score_that_is_no_number_is_none[hinge]",
    ),
    (
        "1 - beta in double", "native/base/adam.h", "rest2(f32(1.0 - factors[1]))", "rest2(1.0f - f32(factors[1]))",
        "tests/regress/test_0270_adam_at_beta2_0_99999.py::test_adam_agrees_with_float64",
    ),
    (
        "chains of rows in double", "native/base/chain.h",
        "constexpr i64 CHAIN_ROWS = 256;", "constexpr i64 CHAIN_ROWS = 1 << 30;",
        "tests/regress/test_0271_gradient_sums_over_a_million_rows.py::test_of_a_dense_layer",
    ),
    (
        "a chain goes on from block to block", "native/base/product.h",
        "return {k, depth, k == begun, k + depth == end};", "return {k, depth, true, k + depth == end};",
        "tests/compute/test_dense_bits.py::test_bits_are_those_of_one_ascending_chain",
    ),
    (
        "a table row's gradient in double", "native/kernels/embedding.h",
        "ST_FOR(d, dim) to[d] += from[r * width + d];",
        "ST_FOR(d, dim) to[d] = static_cast<f32>(to[d] + from[r * width + d]);",
        "tests/regress/test_0271_gradient_sums_over_a_million_rows.py::test_of_a_table_row",
    ),
    (
        "a row is scored before it is counted", "native/base/constant.h", "seen[lane] = base_k[k] + share_k[k];",
        "seen[lane] = base_k[k] + share_k[k] + weight;",
        "tests/compute/test_metrics.py::test_the_constant_prediction_does_not_depend_on_batches_or_rounds",
    ),
    (
        "rows of other weights are scored one by one", "native/kernels/score_binary.h",
        "if (other_weights == 0 && abs(seen1 - seen0) > count)", "if (abs(seen1 - seen0) > count)",
        "tests/compute/test_metrics.py::test_the_constant_prediction_does_not_depend_on_batches_or_rounds",
    ),
    (
        "the lead may change within a batch", "native/kernels/score_binary.h",
        "if (other_weights == 0 && abs(seen1 - seen0) > count)", "if (other_weights == 0)",
        "tests/compute/test_metrics.py::test_the_constant_prediction_does_not_depend_on_batches_or_rounds",
    ),
    (
        "a window counts rows", "compute/quality.py", 'int(scores["score.rows"].reshape(-1)[0])',
        'int(scores["score.loss"].reshape(-1)[1])',
        "tests/compute/test_quality.py::test_the_first_window_grows_and_a_full_one_stays_until_the_next_is_full",
    ),
    (
        "accuracy is weighted", "native/kernels/score_binary.h", "(label_r[r] >= 0.5f) ? weight_of(r) : 0.0;",
        "(label_r[r] >= 0.5f) ? 1.0 : 0.0;", "tests/compute/test_metrics.py::test_binary",
    ),
    (
        "the AUC is weighted", "native/kernels/score_binary.h", "weight > 0 ? weight : 0, smaller(",
        "weight > 0 ? 1 : 0, smaller(", "tests/compute/test_metrics.py::test_auc_is_that_of_scikit_learn_to_1e_3",
    ),
    (
        "equal logits count half", "compute/metrics.py", "np.where(abs(apart) < 1e-3, 0, apart)", "(apart - 1)",
        "tests/compute/test_metrics.py::test_auc_of_logits_that_are_huge_equal_or_alone",
    ),
    (
        "a data folder is the user's alone", "streamtrain/broker/folder.py", "data.chmod(0o700)", "pass",
        "tests/broker/test_broker.py::test_a_data_folder_is_the_users_alone",
    ),
    (
        "stop refuses a Kafka on another port", "streamtrain/broker/broker.py",
        "broker = find_broker(data, port)\n        if", "broker = find_broker(data)\n        if",
        "tests/broker/test_broker.py::test_a_second_start_finds_the_first_and_stop_ends_it",
    ),
    (
        "as many workers as there is room for", "streamtrain/job/sections.py", "le=_native.MAX_WORKERS", "le=1_024",
        "tests/regress/test_0272_limits_agree.py::test_workers",
    ),
    (
        "as many partitions as there is room for", "streamtrain/kafka/admin.py",
        "if state.partitions > _native.MAX_PARTITIONS:", "if False:",
        "tests/regress/test_0272_limits_agree.py::test_a_topic_with_more_partitions_is_a_mistake",
    ),
    (
        "as many classes as there is room for", "streamtrain/columns/kinds/label.py",
        "not 2 <= count <= _native.MAX_CLASSES", "count < 2",
        "tests/regress/test_0272_limits_agree.py::test_classes_and_columns",
    ),
]
