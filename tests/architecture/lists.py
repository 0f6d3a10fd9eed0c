"""A registry's folder is the only list of its entries: neither sources nor tests write several of them down.

A literal counts where its texts, but one at most, name two or more entries of one registry. Of a tuple in it the first
text counts.
"""

from __future__ import annotations

import ast

from streamtrain.registry import registries
from tests.architecture.sources import nodes

_SLOT = "blocks of a slot"
_CELL = "what a cell holds"
_LIBRARY = "a format's library beside it"
# where those named are not "the entries there are": file, or folder of tests -> the list -> why
ALLOWED = {
    "compute/builder.py": {"train, predict": "the phases of a plan; two commands happen to be called so"},
    "compute/input.py": {"mean, scale, clip": "a statistics block's parts; two transforms happen to be called so"},
    "compute/stateful/vocabulary.py": {"hash, time": "blocks of a vocabulary"},
    "streamtrain/clients/glance.py": {
        "records, snapshots, rounds, control, dead-letters, predictions": "the topics a status and the page need",
    },
    "streamtrain/cli/first_job/inputs.py": {"json, msgpack": "formats whose records say what they are"},
    "streamtrain/cli/commands/demo.py": {"train, predict": "the two commands that the demo runs"},
    "streamtrain/columns/expression.py": {"number, text": _CELL},
    "streamtrain/columns/kinds/bags.py": {"sparse, text": "how much the cells of some kinds hold"},
    "streamtrain/columns/kinds/input.py": {"..., category, time": "what an input may hold"},
    "streamtrain/columns/kinds/label.py": {"number, category": "what a label may be beside its role"},
    "streamtrain/columns/rows.py": {"json, msgpack": _LIBRARY},
    "streamtrain/columns/transforms/transform.py": {"number, text, time, hash": _CELL},
    "streamtrain/run/findings.py": {"records, snapshots": "the topics whose loss loses training"},
    "tests": {
        "train, predict, serve": "services of the compose file",
        "serve, ui": "extras of the image",
        "trainer, predictor, serve": "the pods that have metrics, and a drain",
    },
    "tests/bench": {
        "msgpack, json": "the rival that reads a format",
        "json, msgpack": "the formats whose rows are nested, with their libraries",
        "packed, arrow": "the formats of columns, beside memcpy",
        "vw, libsvm": "the two that have rivals",
        "json, msgpack, packed": "the formats that are timed",
    },
    "tests/chaos": {
        "coordinator, ingest, worker, supervisor": "what a fault strikes",
        "supervisor, coordinator, ingest, worker": "the order in which a trainer starts its processes",
    },
    "tests/checks/verify": {
        "control, snapshots": "the keys of topics that have keys of their own",
        "predictions, snapshots": "topics of one case",
        "rounds, dead_letters, predictions": "topics of one case",
    },
    "tests/cli": {
        "binary_cross_entropy, softmax_cross_entropy, mean_squared_error": "the losses that init chooses",
        "number, category, category, ...": "kinds of one sample",
        "image, image, audio, ..., audio": "samples of the kinds",
        "category, number, number": "what three columns are",
        "produce, history": "calls that ask for one topic",
    },
    "tests/clients": {"rounds, records, records, records": "mistakes of one topic"},
    "tests/columns": {
        "json, msgpack": _LIBRARY,
        "number, category": "the kinds that drawn tables read",
        "number, number, category": "the arguments of a drawn transform",
        "time, moment, weight, key": "the kinds of which a job has one column",
        "json, msgpack, packed": "the formats whose columns have paths, with their libraries",
    },
    "tests/compute": {
        "mean_squared_error, mean_absolute_error, huber, quantile": "losses whose unit the test knows",
        "binary_cross_entropy, focal, hinge, huber, log_cosh, mean_absolute_error, mean_squared_error, "
        "poisson, quantile, softmax_cross_entropy": "the losses there were before heads, with their digests",
        "binary_cross_entropy, binary_cross_entropy, softmax_cross_entropy": "numbers of two losses",
        "numbers, label, weight": _SLOT,
        "momentum, nesterov": "arguments of PyTorch's SGD",
        "momentum, nesterov, amsgrad": "those that PyTorch has by another name",
        "cpu, cuda": "the backends' own names in the environment",
        "batch_norm, layer_norm, rms_norm": "PyTorch's own",
        "batch_norm, layer_norm": "the layers of a group",
    },
    "tests/e2e": {
        "train, check": "the two that say whether threads fit",
        "avro, json, protobuf": "the formats that a registry has serializers for",
        "avro, protobuf": "the formats whose serializers take no plain rows",
        "avro, protobuf, ...": "the formats whose registry names the newest schema",
        "avro, protobuf, protobuf of one row": "the formats whose registry names the newest schema",
        "avro, avro, avro, json": "answers of a registry",
        "amsgrad, lamb": "what the sinks of a file hold",
    },
    "tests/fakes": {
        "none, relu, tanh, sigmoid, mish": "another program, that knows nothing of ours",
        "requests, predictions": "the topics of the bench",
    },
    "tests/files": {
        "parquet, arrow": "the forms of pyarrow",
        "jsonl, svm, vw": "forms of lines, by their names' ends",
    },
    "tests/fitting": {
        "mean_squared_error, mean_absolute_error, huber, log_cosh": "one that outliers pull, and those they do not",
    },
    "tests/kafka": {
        "trainer, trainer, trainer, predictor, auditor": "who misses which right",
        "train, predict": "the commands that run as processes",
        "records, dead-letters": "settings of two topics",
        "records, rounds": "settings of two topics",
    },
    "tests/oracles": {"number, text": _CELL},
    "tests/regress": {"numbers, label, weight": _SLOT},
    "tests/train": {"numbers, label, weight": _SLOT},
    "tests/ui": {
        "snapshots, control, rounds": "the topics in which nothing that is not ours is passed over",
        "snapshots, control": "the pair that makes a job",
        "data, data, data, lineage, lineage, lineage, lineage, lineage, model, model": "the pages of one job",
    },
}


def texts_of(node: ast.AST) -> list[str | None]:
    """The elements of a literal, the keys of a dict, of a tuple its first; None for what is no text."""
    elements: list[ast.expr | None] = []
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        elements = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in node.elts]
    elif isinstance(node, ast.Dict):
        elements = [*node.keys]
    values = [each.value if isinstance(each, ast.Constant) else None for each in elements]
    return [value if isinstance(value, str) else None for value in values]


def lists_of_entries(trees: dict[str, ast.Module]) -> dict[tuple[str, str], str]:
    """The literals that name several entries of a registry: (file or folder of tests, the list) -> where, of which."""
    names = {
        folder: {*registry.names(), *map(registry.display_name, registry.names())}
        for folder, registry in registries().items()
    }
    found: dict[tuple[str, str], str] = {}
    for file, tree in trees.items():
        place = file.rpartition("/")[0] if file.startswith("tests/") else file
        for node in nodes(tree, ast.List, ast.Tuple, ast.Set, ast.Dict):
            texts = texts_of(node)
            if sum(text is not None for text in texts) < 2:
                continue
            for folder, known in names.items():
                named = [text for text in texts if text in known]
                if len(set(named)) >= 2 and len(texts) - len(named) <= 1:
                    found[place, ", ".join(text or "..." for text in texts)] = f"{file}:{node.lineno} {folder}"
    return found


def test_no_literal_names_several_entries_of_a_registry(python_trees):
    found = lists_of_entries(python_trees)
    allowed = {(place, words) for place, lists in ALLOWED.items() for words in lists}
    assert {found[each]: each[1] for each in found if each not in allowed} == {}
    assert sorted(allowed - set(found)) == [], "allowed, and not needed"


def test_such_a_literal_is_found_whatever_its_form():
    for text in ("['dense_forward', 'dot']", "('adam', 'sgd')", "{'json': 1, 'packed': 2}", "{'auto', 'cpu', 'cuda'}",
                 "[('adam', 1), ('sgd', 2)]", "[('adam', 1), 'sgd']"):  # fmt: skip
        assert lists_of_entries({"x.py": ast.parse(text)}), text
    for text in ("['adam', 'x', 'y']", "['adam', 'adam']", "['adam']", "[adam, sgd]", "[('x', 'adam'), ('y', 'sgd')]"):
        assert not lists_of_entries({"x.py": ast.parse(text)}), text
