"""The reference pages, written from the code: `python docs/site/reference.py`.

They hold registries' help, settings, fields' comments and public docstrings. A poor text is mended in the code: people
see it in `streamtrain list` and `--help` too.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, is_typeddict

import typer.main

import streamtrain
from streamtrain import exits
from streamtrain.cli.app import commands
from streamtrain.cli.commands import REGISTRY as COMMANDS
from streamtrain.cli.session import COMMON
from streamtrain.columns import formats, kinds, transforms
from streamtrain.compute import (
    activations,
    averagings,
    backends,
    initializers,
    layers,
    losses,
    optimizers,
    schedules,
    stateful,
    vertices,
)
from streamtrain.compute.options import REQUIRED, Option, Options
from streamtrain.files import forms
from streamtrain.job import settings_table
from streamtrain.job.mistakes import show_value
from streamtrain.registry import BaseRegistry
from streamtrain.telemetry.predictor_metrics import PredictorMeters
from streamtrain.telemetry.serving import ServingTable
from streamtrain.telemetry.trainer_metrics import TrainerMeters
from streamtrain.topics import REGISTRY as TOPICS
from streamtrain.topics.rounds import RANGE_DTYPE, ROUND_DTYPE, SLOT_DTYPE
from streamtrain.topics.topic import Topic, all_topics

FOLDER = Path(__file__).resolve().parents[1] / "reference"
COMMAND = "python docs/site/reference.py"
OF_ENTRIES = re.compile(r"\.<(?!topic|label|column|property|group)\w+>\.|^transforms\.<column>\.")
PARTS = ("manifest", "terms")  # modules of what several messages hold
NO_MESSAGES = ("Publication",)  # classes of a topic's module that no message holds
STRUCTS = {"rounds": ROUND_DTYPE, "slots": SLOT_DTYPE, "ranges": RANGE_DTYPE}
SECTIONS = {  # of a job file, in the order of the page
    "name": "The job's name, at the top of the file.",
    "kafka": "How to reach Kafka. librdkafka's own documentation lists its properties.",
    "registry": "A schema registry, if the records are framed by one.",
    "topics": "Topics that differ from their defaults; [topics](topics.md) lists them.",
    "records": "The format of the records and which of them are trained. Each [format](columns.md#record-formats) has "
    "settings of its own beside these.",
    "columns": "One table for each column, by its name. [Kinds](columns.md#kinds) says which kind takes which setting.",
    "transforms": "One table for each column that is computed: [transforms](columns.md#transforms).",
    "model": "The network and its loss: [layers](model.md#layers), [vertices](model.md#vertices) and "
    "[losses](model.md#losses).",
    "optimizer": "How a step changes the parameters: [optimizers](model.md#optimizers) and "
    "[schedules](model.md#schedules).",
    "train": "Batches, workers, rounds, averaging and early stopping.",
    "ingest": "The process that reads and decodes the records.",
    "publish": "When snapshots are published and how many stay.",
    "predict": "How `streamtrain predict` answers requests.",
}

ABOUT = {  # sections of entries
    "Layers": 'A layer is a table that names itself: `{ dense = 64, activation = "relu" }`. In a graph it says as `of` '
    "which vertex it reads.",
    "Vertices": "A vertex of `[model.graph]` names what it reads under its own name: "
    '`{ concat = ["deep", "input.hour"] }`. Layers are vertices too.',
    "Activations": "What `activation` of a layer and `function` of an activation vertex may be.",
    "Initializers": "What weights start from, by the job's seed.",
    "Losses": "`[model] loss` is a name, or a table with a name and settings.",
    "Optimizers": "g is the gradient, p a parameter. The usual rate is the default of `learning_rate`.",
    "Schedules": "The learning rate is multiplied by what the schedule gives.",
    "Averagings": "What the workers' parameters become at the end of a round.",
    "Backends": "`train.backend`. `auto` takes the one that works here and has the highest priority, which an "
    "environment variable may set.",
    "Kinds": "`kind` of a column. `input`, `key`, `label`, `time` (role `event_time`) and `weight` are roles. "
    "[Settings](settings.md#columns) explains each setting; `kind`, `role`, `path`, `missing` and `from` are for all.",
    "Transforms": "A transform names what it reads under its own name, and its column by the table's: "
    '`log_distance = { log1p = "distance" }`. Beside these settings it takes those of the column that it computes: '
    "[transform columns](../transform.md).",
    "Transforms with state": "These are learned from the rows seen so far. A row sees the state of its round's start.",
    "Record formats": "`records.format`: what the value of a Kafka message is.",
    "File formats": "What commands and functions that take files read, by the file's name: [files](../files.md).",
}


def page(title: str, about: str, *parts: Iterable[str]) -> str:
    head = [f"# {title}", "", f"<!-- Generated from the code: {COMMAND} -->", "", about, ""]
    return "\n".join([*head, *(line for part in parts for line in part)]).rstrip() + "\n"


def cell(text: object) -> str:
    """A text as a cell of a table, or in a paragraph: nothing in it is markup but backquotes."""
    parts = re.split(r"(`[^`]+`)", str(text))
    return "".join(part.replace("|", r"\|") if at % 2 else _plain(part) for at, part in enumerate(parts))


def _plain(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([*|\[\]])", r"\\\1", re.sub(r"\s+", " ", text))


def prose(text: str | None) -> list[str]:
    """The lines of a docstring's paragraphs."""
    return [line for each in inspect.cleandoc(text or "").split("\n\n") if each for line in (cell(each), "")]


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table without the columns that are empty in every row; [] if there is no row."""
    found = [list(row) for row in rows]
    used = [at for at in range(len(head)) if any(row[at] for row in found)]
    lines = [" | ".join(row[at] for at in used) for row in ([*head], ["---"] * len(head), *found)]
    return [*(f"| {line} |" for line in lines), ""] if found else []


def section(title: str, *about: str) -> list[str]:
    return [f"## {title}", "", *(line for text in about if text for line in (text, ""))]


# --- settings ---------------------------------------------------------------------------------------------------------


def settings() -> str:
    """Every setting that is not one entry's own."""
    rows = [row for row in settings_table() if not row.when and not OF_ENTRIES.search(row.path)]
    parts = []
    for name, about in SECTIONS.items():
        own = [row for row in rows if row.path.split(".")[0] == name]
        rows = [row for row in rows if row not in own]
        parts.append([
            *section(f"[{name}]" if len(own) > 1 or "." in own[0].path or name == "transforms" else name, about),
            *table(["setting", "takes", "default", "what it does"],
                   [(code(row.path), cell(row.takes), code(row.default), cell(row.help)) for row in own]),
        ])  # fmt: skip
    assert not rows, rows
    about = """Every setting of a job file. `streamtrain list settings` prints the same; [the job file](../settings.md)
shows them at work.

An environment variable overrides the file: `train.workers` is `STREAMTRAIN_TRAIN__WORKERS` (capitals, two underscores
for each dot; a property of librdkafka has one underscore for each of its own dots). A flag overrides both:
`--set train.workers=4`."""
    return page("Settings", about, *parts)


# --- entries of registries --------------------------------------------------------------------------------------------


def takes(option: Option) -> str:
    names = set(option.names())
    if names >= set(activations.names()):
        return "an [activation](#activations)" + (", or `none`" if "none" in names else "")
    if names >= set(initializers.REGISTRY.names()):
        return "an [initializer](#initializers), or `auto`"
    return cell(option.takes())


def default(option: Option) -> str:
    return "required" if option.default is REQUIRED else code(show_value(option.default))


def entries(registry: BaseRegistry, title: str, options: Callable[[str], Options] | None = None,
            **extra: Callable[[str], str]) -> list[str]:  # fmt: skip
    """One table of the entries, and one of their settings. `extra`: more columns of the first table."""
    head = [registry.what.split(".")[-1], *(name.replace("_", " ") for name in extra), "what it does"]
    rows = [(code(registry.display_name(name)), *(column(name) for column in extra.values()), cell(text))
            for name, text in registry.describe().items()]  # fmt: skip
    own = [(code(name), code(setting), takes(option), default(option), cell(option.help))
           for name in (registry.names() if options else ()) for setting, option in options(name).items()]  # fmt: skip
    return [*section(title, ABOUT[title]), *table(head, rows),
            *table([head[0], "setting", "takes", "default", "what it is"], own)]


def shared(options: Options, about: str) -> list[str]:
    rows = [(code(name), takes(option), default(option), cell(option.help)) for name, option in options.items()]
    return [about, "", *table(["setting", "takes", "default", "what it does"], rows)]


def layer_example(name: str) -> str:
    return code(show_value(max(layers.examples(name), key=len)).replace('"none"', '"relu"'))


def vertex_example(name: str) -> str:
    module = vertices.REGISTRY.get(name)
    inputs = "a" if module.MOST == 1 else ["a", "b"]
    settings = module.EXAMPLES[0][1] if module.EXAMPLES else {}
    more = "" if module.LEAST == module.MOST else ", of as many as you like"
    return code(show_value({name: inputs, **settings})) + more


def transform_example(name: str) -> str:
    """The first of an entry's examples, without the settings of the column that it makes."""
    given = (transforms.REGISTRY if name in transforms.names() else stateful.REGISTRY).get(name).EXAMPLES[0]["table"]
    return code(show_value({key: value for key, value in given.items() if key in transforms.options(name)}))


def label_of(loss: str) -> str:
    return {"binary": "0 or 1"}.get(losses.label_kind(loss), losses.label_kind(loss))


def priority(backend: str) -> str:
    return f"{code(backends.priority_names()[backend])}, {backends.get(backend).PRIORITY} unless set"


def model() -> str:
    known = [(code(name), cell(activations.REGISTRY.help(name))) for name in activations.names()]
    return page(
        "Layers, losses and optimizers",
        "What a job's network may be made of and how it learns. [The network](../model.md) shows them together.",
        entries(layers.REGISTRY, "Layers", layers.options, for_example=layer_example),
        entries(vertices.REGISTRY, "Vertices", vertices.options, for_example=vertex_example),
        [*section("Activations", ABOUT["Activations"]), *table(["activation", "what it computes"], known)],
        entries(initializers.REGISTRY, "Initializers"),
        entries(losses.REGISTRY, "Losses", losses.options, label=label_of),
        entries(optimizers.REGISTRY, "Optimizers", optimizers.own_options,
                usual_rate=lambda name: f"{optimizers.get(name).RATE:g}"),
        shared(optimizers.COMMON, "Every optimizer takes these too. `[optimizer.groups]` sets any of them for one "
               f"group of parameters: {', '.join(map(code, optimizers.GROUPS))}."),
        entries(schedules.REGISTRY, "Schedules", schedules.own_options),
        shared(schedules.COMMON, "Every schedule takes these too."),
        entries(averagings.REGISTRY, "Averagings", averagings.options),
        entries(backends.REGISTRY, "Backends", priority=priority),
    )  # fmt: skip


def kind_settings(name: str) -> str:
    return ", ".join(code(field.alias or key) for key, field in kinds.kinds()[name].options.model_fields.items()
                     if key not in kinds.kinds()[kinds.DEFAULT].options.model_fields or key in ("parse", "standardize"))


def columns() -> str:
    return page(
        "Kinds, transforms and formats",
        "What columns may hold, what may be computed from them, and the bytes they come in.",
        entries(kinds.REGISTRY, "Kinds", settings=kind_settings),
        entries(transforms.REGISTRY, "Transforms", transforms.options, for_example=transform_example),
        entries(stateful.REGISTRY, "Transforms with state", transforms.options, for_example=transform_example),
        entries(formats.REGISTRY, "Record formats", formats.options),
        entries(forms.REGISTRY, "File formats"),
    )  # fmt: skip


# --- commands ---------------------------------------------------------------------------------------------------------


def parameters(command: Any, common: bool) -> Iterator[tuple[str, ...]]:
    """Yields a row for each argument and option; `common`: those that every command has, else the others."""
    for each in command.params:
        if each.hidden or (each.rich_help_panel == COMMON) != common or "--help" in each.opts:
            continue
        is_option = each.opts[0].startswith("-")
        names = [*each.opts, *each.secondary_opts] if is_option else [each.metavar or each.name.upper()]
        value = (each.metavar or "").replace("|", " or ") if is_option else ""
        given = each.show_default and each.default is not None and each.default not in ("", False)
        low, high = each.min, each.max
        bounds = "" if low is None else f" At least {low:,}." if high is None else f" From {low:,} to {high:,}."
        bounds = "" if common else bounds
        yield ", ".join(map(code, names)), cell(value), code(each.default if given else ""), cell(each.help) + bounds


def command_page() -> str:
    parts, shared_rows = [], []
    for name in commands():
        module = COMMANDS.get(name)
        command = typer.main.get_command(module.app)
        below = getattr(command, "commands", {})
        lines = [*section(name), *prose(module.__doc__ if below else command.help or module.__doc__)]
        for sub, each in below.items() or [("", command)]:
            lines += [f"### {name} {sub}", "", *prose(each.help)] if sub else []
            head = ["argument or option", "value", "default", "what it does"]
            lines += table(head, parameters(each, common=False))
            shared_rows = shared_rows or list(parameters(each, common=True))
        parts.append(lines)
    codes = [(code(number), cell(text)) for number, text in exits.OF_COMMANDS.items()]
    return page(
        "Commands and exit codes",
        "Every command of `streamtrain`, as its `--help` explains it. [Operate](../operate.md) shows them at work.",
        [*section("Common options", "Every command takes these."),
         *table(["option", "value", "default", "what it does"], shared_rows)],
        [*section("Exit codes", "SIGTERM, like the first Ctrl-C, lets a command finish what it has begun; a second one "
                  "stops it at once."), *table(["code", "means"], codes)],
        *parts,
    )  # fmt: skip


# --- metrics ----------------------------------------------------------------------------------------------------------


def metric_rows(registry: Any) -> Iterator[tuple[str, str, str, str]]:
    """Yields name, type, labels and help of what a process shows to Prometheus."""
    found = {}
    for collector in list(registry._collector_to_names):
        for metric in collector.collect():
            of = [*vars(collector).values(), collector, metric]
            labels = next((each._labelnames for each in reversed(of) if getattr(each, "_labelnames", ())), ())
            own = [label for label in labels if label != "job"]
            suffix = {"counter": "_total", "info": "_info"}.get(metric.type, "")
            found[metric.name + suffix] = metric.type, ", ".join(map(code, own)), cell(metric.documentation)
    yield from ((code(name), *rest) for name, rest in sorted(found.items()))


def metrics() -> str:
    served = {
        "Trainer": (
            "`streamtrain train JOB.toml --metrics-port 9400`. `/ready` answers 200 while the trainer trains and Kafka "
            "answers, else 503.",
            TrainerMeters("x", 1).registry,
        ),
        "Predictor": (
            "`streamtrain predict JOB.toml --metrics-port 9401`. `/ready` answers 200 while it has a trained snapshot, "
            "Kafka answers and no request waits for its schema.",
            PredictorMeters("x").registry,
        ),
        "Server": (
            "`streamtrain serve JOB.toml --port 8080`, on the port of its predictions.",
            ServingTable(("x",), 1).registry(),
        ),
    }
    parts = [[*section(name, about), *table(["metric", "type", "labels", "what it says"], metric_rows(registry))]
             for name, (about, registry) in served.items()]  # fmt: skip
    about = """What Prometheus reads at `/metrics`. Every metric of a job has the label `job` beside those listed.
`train` and `predict` listen to this machine alone unless `--metrics-host 0.0.0.0` is given. Dashboards and alerts are
in `deploy/prometheus/` and `deploy/grafana/`."""
    return page("Metrics", about, *parts)


# --- topics -----------------------------------------------------------------------------------------------------------


def comments(holder: Any) -> dict[str, str]:
    """Returns the comment behind each field of a class, by the field's name."""
    lines = textwrap.dedent(inspect.getsource(holder)).splitlines()
    (tree,) = ast.parse("\n".join(lines)).body
    assert isinstance(tree, ast.ClassDef)
    return {node.target.id: lines[(node.end_lineno or 0) - 1].partition("  # ")[2] for node in tree.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}  # fmt: skip


def field_table(holder: type) -> list[str]:
    hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in inspect.get_annotations(holder).items()}
    rows = [(code(name), cell(str(hints[name]).replace("Mapping[str, Any]", "map").replace("Named", "map")), cell(text))
            for name, text in comments(holder).items() if name in hints and not name.startswith("_")]  # fmt: skip
    return table(["field", "type", "what it holds"], rows)


def is_record(value: object, module: ModuleType) -> bool:
    """A class whose fields a message holds."""
    if not isinstance(value, type) or value.__module__ != module.__name__ or value.__name__.startswith("_"):
        return False
    if value.__name__ in NO_MESSAGES:
        return False
    frozen = dataclasses.is_dataclass(value) and value.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return frozen or is_typeddict(value) or hasattr(value, "_fields")


def topic_lines(key: str, topic: Topic) -> list[str]:
    module = TOPICS.get(key)
    written = {None: "programs, `streamtrain` among them", "alone": "a trainer's transactions alone",
               "shared": "a trainer's transactions, and others beside them"}[topic.written]  # fmt: skip
    if topic.hosts == "many":
        written = 'each host that trains the job, without transactions; only with `train.hosts = "many"`'
    facts = [
        ("name", code(f"<job>.{topic.suffix}") + ("" if topic.renameable else ", which cannot be changed")),
        ("partitions", f"{topic.partitions}" + (", which cannot be changed" if topic.fixed_partitions else "")),
        ("created with", ", ".join(code(f"{name}={value}") for name, value in topic.config.items())),
        ("written by", written),
        ("wire version", str(topic.wire_version) if topic.owned else ""),
        ("if it is deleted, you lose", cell(topic.loses)),
    ]
    lines = [*section(topic.suffix), *prose(module.__doc__)]
    lines += table(["property", "value"], [fact for fact in facts if fact[1]])
    headers = {value: "" for name, value in vars(module).items() if name.endswith("_HEADER")}
    headers |= dict.fromkeys(getattr(module, "_HEADERS", {}).values(), "")
    lines += ["Headers: " + ", ".join(map(code, headers)) + ".", ""] if headers else []
    lines += record_lines(module)
    if key == "rounds":
        for name, fields in STRUCTS.items():
            rows = [(code(field), code(fields[field])) for field in fields.names or ()]
            lines += [f"### {name}, a column of raw structs", "", *table(["field", "type"], rows)]
    return lines


def record_lines(module: ModuleType) -> list[str]:
    lines = []
    for holder in vars(module).values():
        if is_record(holder, module):
            lines += [f"### {holder.__name__}", "", *prose(own_doc(holder)), *field_table(holder)]
    return lines


def part_lines(name: str) -> list[str]:
    module = import_module(f"streamtrain.topics.{name}")
    return [*section(name), *prose(module.__doc__), *record_lines(module)]


def own_doc(holder: type) -> str:
    """A class's own docstring, not the one that dataclass and NamedTuple write."""
    text = holder.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{holder.__name__}(") else text


def topic_page() -> str:
    about = """The topics of a job and what their messages hold. `streamtrain topics describe JOB.toml` compares a
Kafka with it; `streamtrain read JOB.toml <topic>` prints decoded messages. Values
of control, snapshots (but for chunks) and rounds are one msgpack map with the version of their wire as `wire`; a reader
refuses any other version."""
    topics = [topic_lines(key, topic) for key, topic in all_topics().items()]
    return page("Topics and wire", about, *topics, *map(part_lines, PARTS))


# --- Python -----------------------------------------------------------------------------------------------------------


def signature(name: str, function: Any, width: int = 100) -> str:
    """A function's head as its source has it, without `self` and without private arguments."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    listed = node.args
    plain, kept = [*listed.posonlyargs, *listed.args], []
    defaults = [None] * (len(plain) - len(listed.defaults)) + list(listed.defaults)
    for argument, given in zip(plain, defaults, strict=True):
        if argument.arg not in ("self", "cls"):
            kept.append(_argument(argument, given))
    if listed.vararg:
        kept.append(f"*{ast.unparse(listed.vararg)}")
    elif listed.kwonlyargs:
        kept.append("*")
    kept += [_argument(*pair) for pair in zip(listed.kwonlyargs, listed.kw_defaults, strict=True)]
    gives = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    line = f"{word}{name}({', '.join(kept)}){gives}"
    return line if len(line) <= width else f"{word}{name}(\n    " + ",\n    ".join(kept) + f",\n){gives}"


def _argument(argument: ast.arg, given: ast.expr | None) -> str:
    return ast.unparse(argument) + (f" = {ast.unparse(given)}" if given is not None else "")


def members(holder: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods and properties that a class of ours has, its own before those it inherits."""
    seen = set()
    for base in (each for each in holder.__mro__ if each.__module__.startswith("streamtrain")):
        for name, value in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if inspect.isfunction(function):
                yield name, value


def class_lines(name: str, holder: Any) -> list[str]:
    fields = dataclasses.is_dataclass(holder) or is_typeddict(holder)
    lines = [] if fields or "__init__" not in vars(holder) else ["```text", signature(name, holder.__init__), "```", ""]
    lines += [*prose(own_doc(holder)), *(field_table(holder) if fields else [])]
    rows = []
    for member, value in members(holder):
        is_property = isinstance(value, property) or hasattr(value, "attrname")
        function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
        head = member if is_property else signature(member, function, width=10_000)
        rows.append((code(head.replace("|", "or")), cell(inspect.getdoc(function) or "")))
    return [*lines, *table(["member", "what it does"], rows)]


def python() -> str:
    names = [name for name in streamtrain.__all__ if name != "__version__"]
    found: Mapping[str, Any] = {name: getattr(streamtrain, name) for name in names}
    errors = {name: value for name, value in found.items() if isinstance(value, type) and issubclass(value, Exception)}
    parts = []
    for name, value in sorted(found.items(), key=lambda each: each[0].lower()):
        if name in errors:
            continue
        if inspect.isfunction(value):
            parts.append([*section(name), "```text", signature(name, value), "```", "", *prose(value.__doc__)])
        else:
            parts.append([*section(name), *class_lines(name, value)])
    rows = [(code(name), code(value.__base__.__name__), str(getattr(value, "exit_code", "")), cell(own_doc(value)))
            for name, value in errors.items()]  # fmt: skip
    about = """What `import streamtrain` offers other programs. `streamtrain.integrations` has modules for Faust
([README](../../README.md#the-three-uses)), Spark ([files](../files.md#spark)) and PyTorch ([torch](../torch.md))."""
    return page("Python API", about, *parts, [*section("Errors", "The exit code is what a command ends with."),
                                              *table(["error", "is a", "exit code", "raised when"], rows)])  # fmt: skip


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings, "commands.md": command_page, "metrics.md": metrics, "topics.md": topic_page,
    "python.md": python, "model.md": model, "columns.md": columns,
}  # fmt: skip


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, write in PAGES.items():
        (FOLDER / file).write_text(write(), "utf-8")
