"""How parameters follow their gradients."""

from __future__ import annotations

TESTS = "tests/compute/test_optimizers.py"

GUARDS = [
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
