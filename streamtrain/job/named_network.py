"""The network that a job file names, or a program gives: tried, and what it is written in the place of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamtrain.compute import losses
from streamtrain.compute.model_spec import input_shape
from streamtrain.compute.module_spec import inputs_of
from streamtrain.compute.network import given_beside
from streamtrain.compute.torch import TorchModule, described
from streamtrain.errors import UserMistake
from streamtrain.job.file import JobFile
from streamtrain.job.job_model import schema_of
from streamtrain.job.mistakes import Mistake, show_path, show_value
from streamtrain.job.setting_sources import Gathered


def with_network(
    file: JobFile | None, gathered: Gathered, folder: Path | None, module: Any, imports: bool
) -> tuple[JobFile | None, TorchModule | None]:
    """The file with what its module is, and the module; mistakes are added to `gathered`.

    `imports` is false of what a manifest holds: nothing is imported because a snapshot says so.
    """
    if file is None or (module is None and not isinstance(file.model.torch, str)):
        return file, None
    if not imports:
        expected = "what the module is, as a table"
        gathered.mistakes.append(Mistake("manifest", "model.torch", expected, show_value(file.model.torch)))
        return file, None
    if wrong := beside_mistakes(file, gathered, module):
        gathered.mistakes += wrong
        return file, None
    source = TorchModule.of(module) if module is not None else _named(file, folder)
    try:
        schema = schema_of(file)
    except UserMistake:
        return file, None   # of the columns; it is told elsewhere
    try:
        shape = input_shape({"input": schema.engine_inputs()})
        inputs = inputs_of(shape, schema.numbers, losses.get(file.model.loss.name).outputs(shape))
        spec = described(source, inputs, losses.label_dtype(losses.label_kind(file.model.loss.name)))
    except UserMistake as error:
        path, problem = ("model", "torch"), str(error).removeprefix("model.torch: ")
        gathered.mistakes.append(Mistake(gathered.where(path), show_path(path), problem))
        return file, None
    model = file.model.model_copy(update={"torch": spec.to_dict()})
    return file.model_copy(update={"model": model}), source


def beside_mistakes(file: JobFile, gathered: Gathered, module: Any = None) -> list[Mistake]:
    """Returns the mistakes in what the file says of its network: what does not go with the rest of it, or with a
    program's `module`."""
    model = file.model
    said = {name for name in ("layers", "graph", "torch", "heads") if getattr(model, name)}
    said |= {"torch"} if module is not None else set()
    said |= {"loss"} & model.model_fields_set  # has a default, which nobody has said
    paths = ((("model", name), expected) for name, expected in given_beside(said))
    return [
        Mistake(gathered.where(path), show_path(path), expected, show_value(gathered.at(path)))
        for path, expected in paths
    ]


def _named(file: JobFile, folder: Path | None) -> TorchModule:
    assert isinstance(file.model.torch, str)
    return TorchModule(file.model.torch, None if folder is None else str(folder.resolve()))
