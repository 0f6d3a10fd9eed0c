"""Networks: computation graphs, and those that another library computes."""

from __future__ import annotations

TORCH, REFUSED = "tests/compute/test_torch.py", "tests/compute/test_torch_refused.py"
BATCH_NORM = "tests/compute/test_batch_norm.py"
STACK = "tests/compute/test_stack.py"
GRAPH = "tests/compute/test_graph.py"
TILING = "tests/compute/test_tiling.py"
WORKSPACE = "tests/compute/test_workspace.py"

GUARDS = [
    (
        "tables read their columns of the gradient that is made of some", "compute/input.py",
        "gather(dx, 0 if dx.shape[1] == width else window[0])", "gather(dx, 0)",
        "tests/compute/test_learned_columns.py::test_the_bits_are_those_of_all_columns",
    ),
    (
        "a gradient of some columns is one of the learned columns", "compute/builder.py",
        "if made.learned and all((each.first, each.first + each.ref.shape[1]) == made.learned for each in sent):",
        "if made.learned and any((each.first, each.first + each.ref.shape[1]) == made.learned for each in sent):",
        "tests/compute/test_learned_columns.py::test_the_bits_are_those_of_all_columns",
    ),
    (
        "a module that keeps what it learns elsewhere is refused",
        "compute/torch/trial.py",
        "        if any(not np.array_equal(first[what], second[what], equal_nan=True) for what in first):\n",
        "        if False:\n",
        f"{REFUSED}::test_what_would_break_a_guarantee_is_refused[hidden]",
    ),
    (
        "a module that replaces its tensors is refused",
        "compute/torch/trial.py",
        "        if moved or new:\n",
        "        if False:\n",
        f"{REFUSED}::test_what_would_break_a_guarantee_is_refused[replaces]",
    ),
    (
        "a large table in a module is refused",
        "compute/torch/trial.py",
        "        if part.sparse or size > EMBEDDING_BYTES:\n",
        "        if part.sparse:\n",
        f"{REFUSED}::test_what_would_break_a_guarantee_is_refused",
    ),
    (
        "random numbers of a module go by the step",
        "compute/torch/instance.py",
        "            random.manual_seed(step.random)\n",
        "            pass\n",
        f"{TORCH}::test_random_numbers_go_by_the_step",
    ),
    (
        "random numbers of a layer go by the step",
        "native/kernels/dropout.h",
        "const u64 key = step->random;",
        "const u64 key = 0;",
        "tests/compute/test_dropout.py::test_each_layer_and_each_step_draws_its_own",
    ),
    (
        "a prediction has what dropout leaves out",
        "compute/layers/dropout.py",
        'builder.call("affine", y.elements, 1.0, 0.0, y, x.ref)',
        'builder.call("dropout", y.elements, builder.step, stream, rate, y, x.ref)',
        "tests/compute/test_dropout.py::test_a_prediction_is_that_of_the_network_without_it",
    ),
    (
        "rows of weight 0 are not in what batch norm divides by",
        "native/kernels/batch_norm.h",
        "            if (!(weight_r[r] > 0)) continue;\n",
        "",
        f"{BATCH_NORM}::test_no_further_from_float64_than_pytorch",
    ),
    (
        "batches of few rows are normalised by the running statistics",
        "native/kernels/batch_norm.h",
        "const bool own = count >= f64(least);",
        "const bool own = count >= 2;",
        f"{BATCH_NORM}::test_a_stream_is_learned_from_its_first_batches_on[300]",
    ),
    (
        "running statistics that are not finite are told",
        "native/kernels/batch_norm.h",
        "if (not_finite(mean) | not_finite(spread)) step->not_finite = 1;",
        "",
        f"{BATCH_NORM}::test_running_statistics_that_are_not_finite_are_told",
    ),
    (
        "an output that is still stacked is refused",
        "compute/shape_inference.py",
        "    if given.times != 1:\n",
        "    if False:\n",
        f"{STACK}::test_what_does_not_fit_is_refused",
    ),
    (
        "dropout of a stack draws for each of its rows",
        "compute/layers/dropout.py",
        "Before(x.columns * x.rows.times)",
        "Before(x.columns)",
        f"{STACK}::test_dropout_draws_for_each_of_the_stacked_rows",
    ),
    (
        "a cross network multiplies with its input, not with what came before",
        "compute/layers/cross.py",
        "[x, weighed]",
        "[crossed, weighed]",
        "tests/compute/test_interactions.py::test_it_learns_as_in_pytorch",
    ),
    (
        "of a bag the largest alone learns",
        "native/kernels/bag_max.h",
        "winner_rd[r * dim + d] == e ?",
        "true ?",
        "tests/compute/test_bag_max.py::test_it_is_that_of_pytorch",
    ),
    (
        "a row is centred on the way back too",
        "native/kernels/row_norm.h",
        "dy[c] * scale_c[c] - level - ",
        "dy[c] * scale_c[c] - ",
        "tests/compute/test_row_norm.py::test_a_network_learns_as_in_pytorch",
    ),
    (
        "a module's gradients begin at 0",
        "compute/torch/instance.py",
        "            flat.fill(0)   # gradients are added to what is there, in place\n",
        "",
        f"{TORCH}::test_it_learns_as_the_same_layers_of_ours",
    ),
    (
        "an optimizer of a module goes on where the lineage is",
        "compute/torch/instance.py",
        "                go_on_from(step.number - 1)\n",
        "                pass\n",
        f"{TORCH}::test_its_own_optimizer_is_pytorchs_from_any_step_on",
    ),
    (
        "nothing is imported because a snapshot says so",
        "streamtrain/job/network.py",
        "    if not imports:\n",
        "    if False:\n",
        "tests/job/test_network.py::test_a_manifest_imports_nothing",
    ),
    (
        "what several have read gets the sum of what they send back",
        "compute/builder.py",
        "        for each in of_all[1:]:\n",
        "        for each in ():\n",
        "tests/compute/test_model.py::test_gradients_agree_with_differences",
    ),
    (
        "a way back to itself is found",
        "compute/graph.py",
        "    if left:\n",
        "    if False:\n",
        f"{GRAPH}::test_what_is_no_graph_is_refused_by_its_place",
    ),
    (
        "outputs that are a sum of layers start at 0",
        "compute/graph.py",
        "            waiting += vertex.reads\n    return heads\n",
        "            pass\n    return heads\n",
        f"{GRAPH}::test_a_model_begins_as_the_constant_prediction",
    ),
    (
        "a buffer whose address others know keeps its place",
        "compute/workspace.py",
        "isinstance(call, Outside) or ",
        "",
        f"{WORKSPACE}::test_what_others_know_the_address_of_is_kept",
    ),
    (
        "what is read before it is written is kept",
        "compute/workspace.py",
        "(phase not in spans and role not in WRITES)",
        "False",
        f"{WORKSPACE}::test_what_is_read_before_it_is_written_is_kept",
    ),
    (
        "what a prediction gives outlives the phase",
        "compute/workspace.py",
        '        spans["predict"] = (spans["predict"][0], sum(1 for _ in launches(phases["predict"])))\n',
        "        pass\n",
        f"{WORKSPACE}::test_an_output_is_there_behind_the_last_call",
    ),
    (
        "what needs all rows ends a group of tiles",
        "compute/tiling.py",
        "    return level if not tiled or (tiled_by_rows and by_rows) else level + 2\n",
        "    return level\n",
        f"{TILING}::test_what_a_tile_reads_whole_no_other_tile_of_the_group_changes",
    ),
    (
        "what is made by tiles waits for what is made of all rows",
        "compute/tiling.py",
        "        return level + 1\n",
        "        return level\n" + "        # of no parity\n",
        f"{TILING}::test_calls_keep_their_order_where_one_needs_the_other",
    ),
    (
        "a buffer that a later call reads is of all rows",
        "compute/tiling.py",
        "                        good = isinstance(step, Tiled) and by_rows\n",
        "                        good = True\n",
        f"{TILING}::test_a_whole_network_is_one_group_of_tiles",
    ),
    (
        "sums over tiles are added",
        "compute/tiling.py",
        '        if ops.get(call.op).tiles != "sum":\n            continue\n',
        "        continue\n",
        f"{TILING}::test_many_tiles_agree_with_float64",
    ),
]
