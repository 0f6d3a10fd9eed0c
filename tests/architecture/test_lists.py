"""A registry's folder is the only list of its entries: neither sources nor tests write several of them down.

A literal counts where two or more of its texts, and all but one of them, name entries of one registry.
"""

from __future__ import annotations

import ast

from streamtrain.registry import registries

# where those named are not "the entries there are": file -> why
ALLOWED = {
    "compute/builder.py": "the phases of a plan; two commands happen to be called so",
    "streamtrain/checks/verify/reader.py": "what verify knows how to read, in the order in which ends must be taken",
    "streamtrain/clients/standing.py": "the topics a status needs",
    "streamtrain/run/findings.py": "the topics whose loss loses training",
    "streamtrain/run/job_topics.py": "the topics that only a trainer's transactions write",
    "streamtrain/columns/expression.py": "what a cell holds",
    "streamtrain/columns/formats/avro.py": "what a cell holds",
    "streamtrain/columns/formats/protobuf.py": "what a cell holds",
    "streamtrain/columns/kinds/bags.py": "how much the cells of some kinds hold",
    "streamtrain/columns/kinds/input.py": "what an input may hold",
    "streamtrain/columns/kinds/label.py": "what a label may be beside its role",
    "streamtrain/columns/transforms/transform.py": "what a cell holds",
    "tests/bench/bench_columns.py": "the formats whose rows are nested, with their libraries",
    "tests/bench/bench_transforms.py": "the formats that are timed",
    "tests/bench/bench_ingest.py": "each bench's own load and bar",
    "tests/bench/bench_prediction.py": "the topics of the bench",
    "tests/bench/workbench.py": "the rival that reads a format",
    "tests/chaos/test_recovery.py": "what a fault strikes",
    "tests/chaos/trainer.py": "the order in which a trainer starts its processes",
    "tests/checks/verify/test_forging.py": "the keys of topics that have keys of their own",
    "tests/checks/verify/test_forging_on_kafka.py": "what verify knows how to read",
    "tests/checks/verify/test_good_histories.py": "the topics of one case",
    "tests/columns/test_bad_input.py": "bytes made to hurt one format",
    "tests/columns/test_formats.py": "the types of packed cells",
    "tests/columns/test_paths.py": "the formats whose columns have paths, with their libraries",
    "tests/columns/test_rows.py": "the formats that hold whole rows, with their libraries",
    "tests/compute/test_losses.py": "what PyTorch calls those it has, and those that square no error",
    "tests/compute/test_optimizers.py": "what PyTorch calls those it has",
    "tests/compute/test_registries.py": "the backends' own names in the environment",
    "tests/e2e/test_recovery.py": "what is killed, in the order in which a trainer starts its processes",
    "tests/fakes/numpy_predict.py": "another program, that knows nothing of ours",
    "tests/fakes/prediction_bench.py": "the topics of the bench",
    "tests/fitting/test_losses.py": "those that outliers pull little",
    "tests/kafka/test_admin.py": "settings of two topics",
}


def texts_of(node: ast.AST) -> list[str | None]:
    """The elements of a literal, the keys of a dict; None for what is no text."""
    elements: list[ast.expr | None] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        elements = [*node.elts]
    elif isinstance(node, ast.Dict):
        elements = [*node.keys]
    return [
        each.value if isinstance(each, ast.Constant) and isinstance(each.value, str) else None for each in elements
    ]


def lists_of_entries(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """By file, the literals that name several entries of a registry."""
    names = {
        folder: {*registry.names(), *map(registry.shown, registry.names())} for folder, registry in registries().items()
    }
    found: dict[str, list[str]] = {}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            texts = texts_of(node)
            if sum(text is not None for text in texts) < 2:
                continue
            for folder, known in names.items():
                named = [text for text in texts if text in known]
                if len(named) >= 2 and len(texts) - len(named) <= 1:
                    found.setdefault(file, []).append(f"{file}:{node.lineno} {folder}: {', '.join(named)}")
    return found


def test_no_literal_names_several_entries_of_a_registry(python_trees):
    found = lists_of_entries(python_trees)
    assert [place for file, places in found.items() if file not in ALLOWED for place in places] == []
    assert sorted(set(ALLOWED) - set(found)) == [], "allowed, and not needed"


def test_such_a_literal_is_found_whatever_its_form():
    for text in ("['dense_forward', 'relu']", "('adam', 'sgd')", "{'json': 1, 'packed': 2}", "{'auto', 'cpu', 'cuda'}"):
        assert lists_of_entries({"x.py": ast.parse(text)}), text
    for text in ("['adam', 'x', 'y']", "['adam']", "[adam, sgd]"):
        assert not lists_of_entries({"x.py": ast.parse(text)}), text
