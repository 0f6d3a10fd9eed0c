"""Guards of a plan's phases, of minimizers and of windows in memory."""

_PHASES = "tests/compute/test_phases.py::"
_MINIMIZERS = "tests/compute/test_minimizers.py::"
_OBJECTIVE = "tests/compute/test_objective.py::"
_WINDOW = "tests/fitting/test_window.py::"
_ACCUMULATE = "tests/fitting/test_accumulate.py::"

GUARDS = [
    (
        "a plan has no phase that was not asked for",
        "native/plan/cpu_plan.cpp",
        "    if (stretches.empty()) no_phase(phase);\n",
        "",
        _PHASES + "test_a_plan_has_the_phases_asked_for",
    ),
    (
        "a gradient is no update",
        "compute/builder.py",
        'UPDATE = ("update",)',
        'UPDATE = ("update", "gradient")',
        _PHASES + "test_it_changes_nothing_but_the_parameters_and_has_equal_bits",
    ),
    (
        "what is not asked for takes no memory",
        "compute/model.py",
        'if any(ref.space == "gradient" for steps in tiling.phases.values() for ref in _refs(steps)):',
        "if True:",
        _PHASES + "test_what_is_not_asked_for_takes_no_memory",
    ),
    (
        "a batch counts by the weights of its rows",
        "compute/objective.py",
        "self._over([self._slots[at]], x, self._weight / len(self._slots))",
        "self._over([self._slots[at]], x, self._weight)",
        _OBJECTIVE + "test_rows_cut_otherwise_have_the_same_value_and_gradient",
    ),
    (
        "l2 has a slope",
        "compute/objective.py",
        "                gradient[part.place] += l2 * own\n",
        "",
        _OBJECTIVE + "test_the_gradient_is_that_of_the_value",
    ),
    (
        "what draws random numbers has no one objective",
        "compute/objective.py",
        "    if builder.draws:\n",
        "    if False:\n",
        _OBJECTIVE + "test_what_has_no_such_function",
    ),
    (
        "l1 needs an optimizer that takes it",
        "compute/minimizers/__init__.py",
        "if np.any(descent.l1) and not chosen.TAKES_L1:",
        "if False:",
        _MINIMIZERS + "test_owlqn_finds_what_l1_leaves",
    ),
    (
        "owlqn stays in its orthant",
        "compute/minimizers/owlqn.py",
        "            x[(np.sign(x) != orthant) & has_l1] = 0.0\n",
        "",
        _MINIMIZERS + "test_owlqn_finds_what_l1_leaves",
    ),
    (
        "slopes lead on where rounded values show nothing",
        "compute/minimizers/_line_search.py",
        "        is_near = tried.point.value <= self._start.point.value + self._slack\n",
        "        is_near = False\n",
        _MINIMIZERS + "test_values_that_are_rounded_do_not_hold_it_up",
    ),
    (
        "a value that is not finite is too high",
        "compute/minimizers/_descent.py",
        "return point if point.is_finite else replace(point, value=math.inf)",
        "return point",
        _MINIMIZERS + "test_where_it_is_not_finite_is_too_high",
    ),
    (
        "rates that have grown too large are taken back",
        "compute/minimizers/stochastic_meta_descent.py",
        "        if found.value > highest:",
        "        if False:",
        _MINIMIZERS + "test_meta_descent_adapts_its_rates_to_noise",
    ),
    (
        "a window's statistics are there before it is learned",
        "streamtrain/fitting/window.py",
        "    take_statistics(model, held.layout, held.slots, state)\n",
        "",
        _WINDOW + "test_statistics_are_those_of_a_first_round_of_all_rows",
    ),
    (
        "moments are those of all rows",
        "compute/window_statistics.py",
        "    _native.first_moments(model.layout, slot_layout, addresses, first.ctypes.data)\n",
        "",
        _WINDOW + "test_statistics_are_those_of_a_first_round_of_all_rows",
    ),
    (
        "the best place is what is kept",
        "streamtrain/fitting/window.py",
        "    objective.take(found.x)\n",
        "    objective.take(0 * found.x)\n",
        _WINDOW + "test_it_is_a_fit",
    ),
    (
        "a slot holds all batches of an update",
        "streamtrain/run/arena.py",
        "make(job.train.update_rows,",
        "make(job.train.batch_rows,",
        _ACCUMULATE + "test_it_is_one_batch_of_all_their_rows_to_the_bits",
    ),
]
