"""Guards of several heads: rows without a label, and what of a head's loss and gradient the network gets."""

_HEADS = "tests/compute/test_heads.py::"
_NO_LABEL = _HEADS + "test_a_head_whose_label_no_row_has_learns_nothing_and_the_others_as_without_it"
_ROWS = "tests/columns/test_heads.py::test_both_decoders_leave_out_the_rows_without_any_label"
_TORCH = _HEADS + "test_two_heads_learn_as_in_pytorch"

GUARDS = [
    (
        "a number that is missing has no weight",
        "native/kernels/head.h",
        "label_r[r] == label_r[r] ? weight_r[r] : 0.0f",
        "weight_r[r]",
        _NO_LABEL,
    ),
    (
        "a class that is missing has no weight",
        "native/kernels/head.h",
        "label_r[r] >= 0 ? weight_r[r] : 0.0f",
        "weight_r[r]",
        _NO_LABEL,
    ),
    (
        "a gradient is of all rows, and times the head's weight",
        "native/kernels/head.h",
        "dz_n[i] *= factor;",
        "dz_n[i] *= weight;",
        _TORCH,
    ),
    (
        "the loss is the weighted sum",
        "native/kernels/head.h",
        "step->loss_sum += f64(weight) * head->loss_sum;",
        "step->loss_sum += head->loss_sum;",
        _HEADS + "test_figures_are_those_of_the_rows_that_have_the_label",
    ),
    (
        "a head that is not finite is flagged",
        "native/kernels/head.h",
        "        step->not_finite |= head->not_finite;\n",
        "",
        _HEADS + "test_a_head_whose_loss_is_not_finite_is_flagged",
    ),
    (
        "what a head found in the batch before is forgotten",
        "native/kernels/head.h",
        "        head->not_finite = 0;\n",
        "",
        _HEADS + "test_a_head_whose_loss_is_not_finite_is_flagged",
    ),
    (
        "a row without any label is left out",
        "native/decode/row_writer.h",
        "        if (skip == NO_COLUMN && heads && heads == plan_->heads) skip = head;\n",
        "",
        _ROWS,
    ),
    (
        "so is one of a block",
        "native/decode/columnar_decoder.h",
        "        ended |= without_heads(row, count);\n",
        "",
        _ROWS,
    ),
    (
        "a block whose labels lie around the record goes row by row",
        "native/decode/columnar_decoder.h",
        "        if (heads_.empty() && others) fast_ = false;\n",
        "",
        _ROWS,
    ),
    (
        "a row that waits for transforms may lack all labels",
        "native/decode/row_transforming.h",
        "    return heads == 0 || missing_heads < heads;\n",
        "    return true;\n",
        "tests/train/test_waiting_rows.py::test_rows_without_any_label_are_left_out_of_those_that_wait",
    ),
    (
        "rows of which some labels are made do not wait",
        "native/decode/record_decoder.h",
        " && !plan->mixes_heads()),\n",
        "),\n",
        "tests/train/test_waiting_rows.py::test_rows_without_any_label_are_left_out_of_those_that_wait",
    ),
    (
        "a label that is missing is none of the first round's moments",
        "native/train/first_moments.cpp",
        "if (weight[r] > 0 && !std::isnan(x[u64{r} * block.width]))",
        "if (weight[r] > 0)",
        "tests/fitting/test_heads.py::test_it_learns_what_each_head_is_asked",
    ),
    (
        "a label that is always there keeps a row",
        "streamtrain/columns/schema.py",
        '            return SKIP_HEAD if all(each.missing == SKIP_HEAD for _, each in self.labels) else "value"\n',
        "            return SKIP_HEAD\n",
        _ROWS,
    ),
    (
        "an output layer reads the last vertex that no loss takes",
        "compute/graph.py",
        "if vertex.name not in taken), INPUT)",
        "), INPUT)",
        _HEADS + "test_the_last_vertex_may_be_one_that_a_loss_takes",
    ),
]
