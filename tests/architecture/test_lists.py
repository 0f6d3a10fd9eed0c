"""A registry's folder is the only list of its entries: neither sources nor tests write several of them down.

A literal counts where two or more of its texts, and all but one of them, name entries of one registry. Of a tuple in it
the first text counts.
"""

from __future__ import annotations

import ast

from streamtrain.registry import registries
from tests.architecture.nodes import nodes

_SLOT = "blocks of a slot"
_CELL = "what a cell holds"
_LIBRARY = "a format's library beside it"
# where those named are not "the entries there are": file -> the list -> why
ALLOWED = {
    "compute/builder.py": {"train, predict": "the phases of a plan; two commands happen to be called so"},
    "compute/input.py": {"mean, scale, clip": "a statistics block's parts; two transforms happen to be called so"},
    "compute/stateful/vocabulary.py": {"hash, time": "blocks of a vocabulary"},
    "streamtrain/clients/standing.py": {
        "records, snapshots, rounds, control, dead-letters, predictions": "the topics a status and the page need",
    },
    "streamtrain/columns/expression.py": {"number, text": _CELL},
    "streamtrain/columns/formats/avro.py": {"number, text": _CELL},
    "streamtrain/columns/formats/protobuf.py": {"number, text": _CELL},
    "streamtrain/columns/kinds/bags.py": {"sparse, text": "how much the cells of some kinds hold"},
    "streamtrain/columns/kinds/input.py": {"..., category, time": "what an input may hold"},
    "streamtrain/columns/kinds/label.py": {"number, category": "what a label may be beside its role"},
    "streamtrain/columns/transforms/transform.py": {"number, text, time, hash": _CELL},
    "streamtrain/demo/page.py": {"train, predict": "the two commands that the demo runs"},
    "streamtrain/run/findings.py": {"records, snapshots": "the topics whose loss loses training"},
    "tests/bench/bed.py": {"msgpack, json": "the rival that reads a format"},
    "tests/bench/columns.py": {"json, msgpack": "the formats whose rows are nested, with their libraries"},
    "tests/bench/decode.py": {"packed, arrow": "the formats of columns, beside memcpy"},
    "tests/bench/ingest.py": {"msgpack, json": "each bench's own load and bar"},
    "tests/bench/prediction.py": {"requests, predictions": "the topics of the bench"},
    "tests/bench/texts.py": {"vw, libsvm": "the two that have rivals"},
    "tests/bench/transforms.py": {"json, msgpack, packed": "the formats that are timed"},
    "tests/chaos/test_recovery.py": {"coordinator, ingest, worker, supervisor": "what a fault strikes"},
    "tests/chaos/trainer.py": {
        "supervisor, coordinator, ingest, worker": "the order in which a trainer starts its processes",
    },
    "tests/checks/verify/test_forging.py": {"control, snapshots": "the keys of topics that have keys of their own"},
    "tests/checks/verify/test_good_histories.py": {
        "predictions, snapshots": "topics of one case",
        "rounds, dead_letters, predictions": "topics of one case",
    },
    "tests/cli/test_acl.py": {"trainer, trainer, trainer, predictor, auditor": "who misses which right"},
    "tests/cli/test_topics_and_records.py": {"produce, history": "calls that ask for one topic"},
    "tests/clients/test_writer.py": {"rounds, records, records, records": "mistakes of one topic"},
    "tests/columns/test_bad_input.py": {"json, msgpack": _LIBRARY},
    "tests/columns/test_encode.py": {"json, msgpack": _LIBRARY},
    "tests/columns/test_formats.py": {"text, text, i4": "the types of packed cells"},
    "tests/columns/test_paths.py": {
        "json, msgpack": "the formats whose columns have paths, with their libraries",
        "json, msgpack, packed": "the formats whose columns have paths, with their libraries",
    },
    "tests/columns/test_rows.py": {"json, msgpack": "the formats that hold whole rows, with their libraries"},
    "tests/columns/test_sparse.py": {"json, msgpack": _LIBRARY},
    "tests/compute/test_heads.py": {
        "binary_cross_entropy, focal, hinge, huber, log_cosh, mean_absolute_error, mean_squared_error, poisson, "
        "quantile, softmax_cross_entropy": "the losses there were before heads, with their digests",
        "sgd, adam": "one that keeps nothing and one that does, beside PyTorch's",
        "cpu, reference": "what is computed, and its meaning",
    },
    "tests/compute/test_model.py": {
        "binary_cross_entropy, binary_cross_entropy, softmax_cross_entropy": "numbers of two losses",
        "numbers, label, weight": _SLOT,
    },
    "tests/compute/test_objective.py": {
        "hinge, quantile, mean_absolute_error, huber": "the losses that have corners",
    },
    "tests/compute/test_optimizers.py": {
        "momentum, nesterov": "arguments of PyTorch's SGD",
        "momentum, nesterov, amsgrad": "those that PyTorch has by another name",
    },
    "tests/compute/test_registries.py": {"cpu, cuda": "the backends' own names in the environment"},
    "tests/compute/test_row_norm.py": {"layer_norm, rms_norm": "the layers of one kernel"},
    "tests/e2e/test_recovery.py": {
        "coordinator, ingest, worker": "what is killed, in the order in which a trainer starts its processes",
        "ingest, coordinator": "what is killed, in the order in which a trainer starts its processes",
    },
    "tests/e2e/test_threads.py": {"train, check": "the two that say whether threads fit"},
    "tests/e2e/test_stateful.py": {"packed, json": "two runs"},
    "tests/fakes/numpy_predict.py": {"none, relu, tanh, sigmoid, mish": "another program, that knows nothing of ours"},
    "tests/fakes/prediction_bench.py": {"requests, predictions": "the topics of the bench"},
    "tests/fitting/test_losses.py": {"mean_absolute_error, ..., log_cosh": "those that outliers pull little"},
    "tests/kafka/test_admin.py": {
        "records, dead-letters": "settings of two topics",
        "records, rounds": "settings of two topics",
    },
    "tests/regress/test_0272_limits_agree.py": {"numbers, label, weight": _SLOT},
    "tests/test_deploy.py": {
        "train, predict, serve": "services of the compose file", "serve, ui": "extras of the image",
    },
    "tests/test_kubernetes.py": {"trainer, predictor, serve": "the pods that have metrics, and a drain"},
    "tests/test_watch.py": {"trainer, predictor, serve": "who has metrics"},
    "tests/topics/test_snapshots.py": {"lineage, 00, lineage": "a field of a manifest; a page happens to be called so"},
    "tests/ui/test_following.py": {
        "snapshots, control, rounds": "the topics in which nothing that is not ours is passed over",
        "snapshots, control": "the pair that makes a job",
    },
    "tests/train/arena_run.py": {"numbers, label, weight": _SLOT},
}


def texts_of(node: ast.AST) -> list[str | None]:
    """The elements of a literal, the keys of a dict, of a tuple its first; None for what is no text."""
    elements: list[ast.expr | None] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        elements = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in node.elts]
    elif isinstance(node, ast.Dict):
        elements = [*node.keys]
    return [
        each.value if isinstance(each, ast.Constant) and isinstance(each.value, str) else None for each in elements
    ]


def lists_of_entries(trees: dict[str, ast.Module]) -> dict[tuple[str, str], str]:
    """The literals that name several entries of a registry: (file, the list) -> where, and of which."""
    names = {
        folder: {*registry.names(), *map(registry.shown, registry.names())} for folder, registry in registries().items()
    }
    found: dict[tuple[str, str], str] = {}
    for file, tree in trees.items():
        for node in nodes(tree):
            texts = texts_of(node)
            if sum(text is not None for text in texts) < 2:
                continue
            for folder, known in names.items():
                named = [text for text in texts if text in known]
                if len(named) >= 2 and len(texts) - len(named) <= 1:
                    found[file, ", ".join(text or "..." for text in texts)] = f"{file}:{node.lineno} {folder}"
    return found


def test_no_literal_names_several_entries_of_a_registry(python_trees):
    found = lists_of_entries(python_trees)
    allowed = {(file, words) for file, lists in ALLOWED.items() for words in lists}
    assert {place: words for (file, words), place in found.items() if (file, words) not in allowed} == {}
    assert sorted(allowed - set(found)) == [], "allowed, and not needed"


def test_such_a_literal_is_found_whatever_its_form():
    for text in ("['dense_forward', 'relu']", "('adam', 'sgd')", "{'json': 1, 'packed': 2}", "{'auto', 'cpu', 'cuda'}",
                 "[('adam', 1), ('sgd', 2)]", "[('adam', 1), 'sgd']"):  # fmt: skip
        assert lists_of_entries({"x.py": ast.parse(text)}), text
    for text in ("['adam', 'x', 'y']", "['adam']", "[adam, sgd]", "[('x', 'adam'), ('y', 'sgd')]"):
        assert not lists_of_entries({"x.py": ast.parse(text)}), text
