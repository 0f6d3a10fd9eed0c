"""How parameters follow their gradients."""

from __future__ import annotations

TESTS = "tests/compute/test_optimizers.py"

GUARDS = [
    (
        "a round's rate is what a schedule has left of it",
        "native/train/worker_round.cpp",
        "if (standing_) std::memcpy(&left,",
        "if (false) std::memcpy(&left,",
        "tests/state/test_plateau.py::test_a_rounds_rate_is_told_by_its_start",
    ),
    (
        "a plateau is of the scores since its last evaluation",
        "native/state/rules/plateau.h",
        "    now.loss = loss;\n",
        "",
        "tests/state/test_plateau.py::test_an_evaluation_is_of_the_rows_since_the_last",
    ),
    (
        "other settings of a schedule that keeps where it stands do not fit a lineage",
        "streamtrain/run/lineage.py",
        "    if scheduled[0] != scheduled[1]:\n",
        "    if False:\n",
        "tests/e2e/test_schedules.py::test_where_it_stands_belongs_to_a_lineage",
    ),
    (
        "biases do not shrink unless their group says so",
        "compute/optimizers/__init__.py",
        "if group in FEW else {}",
        "if False else {}",
        f"{TESTS}::test_groups_have_settings_of_their_own",
    ),
    (
        "what clips by norm waits for all gradients",
        "compute/update.py",
        "waiting.append if self._by_norm else",
        "waiting.append if False else",
        f"{TESTS}::test_clipping_by_norm_scales_what_is_together",
    ),
    (
        "a formula has its own l1 and l2 once",
        "compute/optimizers/ftrl.py",
        'FOLDED = ("l1", "l2")',
        "FOLDED = ()",
        f"{TESTS}::test_a_setting_of_the_formulas_own_counts_once",
    ),
    (
        "ftrl goes on from the start of a parameter",
        "native/kernels/ftrl.h",
        "if (n == 0) z =",
        "if (n < 0) z =",
        f"{TESTS}::test_ftrl_keeps_at_zero_what_little_speaks_for",
    ),
    (
        "a group keeps what the others keep",
        "compute/optimizers/__init__.py",
        "if not found and not _keeps_the_same(",
        "if False and not _keeps_the_same(",
        f"{TESTS}::test_what_is_no_setting_is_refused_by_its_place",
    ),
    (
        "a round's rate goes by the schedule",
        "streamtrain/run/roles/worker.py",
        "    if not schedules.is_constant(config.schedule):\n",
        "    if False:\n",
        "tests/e2e/test_schedules.py::test_it_goes_by_the_steps_of_the_lineage",
    ),
    (
        "a replay's rate goes by the schedule",
        "streamtrain/checks/replay/engine.py",
        "        if not schedules.is_constant(self._terms.learning_rate):\n",
        "        if False:\n",
        "tests/e2e/test_schedules.py::test_it_goes_by_the_steps_of_the_lineage",
    ),
]
