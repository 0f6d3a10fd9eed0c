"""Another program that predicts from a file of `snapshots get`: NumPy and the file's own metadata, nothing of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}
MASK = 0xFFFFFFFF
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: (1 + np.tanh(x / 2)) / 2,
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
}


def read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and tensors of a safetensors file (the package `safetensors` does the same)."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, each in header.items():
        begin, end = each["data_offsets"]
        values = np.frombuffer(raw[start + begin : start + end], DTYPES[each["dtype"]])
        tensors[name] = values.reshape(each["shape"])
    return metadata, tensors


def murmur3(text: bytes, seed: int) -> int:
    """MurmurHash3_x86_32; a package such as mmh3 has it."""
    h = seed
    padded = text + bytes(-len(text) % 4)
    for at in range(0, len(padded), 4):
        k = int.from_bytes(padded[at : at + 4], "little") * 0xCC9E2D51 & MASK
        h ^= (k << 15 | k >> 17) * 0x1B873593 & MASK
        if at + 4 <= len(text):
            h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & MASK
    h ^= len(text)
    h = (h ^ h >> 16) * 0x85EBCA6B & MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & MASK
    return h ^ h >> 16


def entries(column: Mapping[str, Any], text: str) -> list[str]:
    """The entries of a text: its words or characters, and those that follow each other."""
    text = text.lower() if column["lower_case"] else text
    words = column["by"] == "word"
    tokens = re.findall(r"[^\W_]+", text) if words else list(text)
    sizes = column["ngrams"] if isinstance(column["ngrams"], list) else [column["ngrams"]] * 2
    return [
        (" " if words else "").join(tokens[at : at + size])
        for at in range(len(tokens))
        for size in range(sizes[0], sizes[1] + 1)
        if at + size <= len(tokens)
    ]


class Predictor:
    """The model of a file; predict() takes one row as a dict and gives the outputs."""

    def __init__(self, path: Path) -> None:
        self.metadata, self.tensors = read(path)
        self.inputs, self.layers, self.classes, self.statistics = (
            json.loads(self.metadata[name]) for name in ("inputs", "layers", "classes", "statistics")
        )

    def moments(self, name: str, row: int) -> tuple[float, float, float]:
        """Mean, deviation and clip of a column."""
        of = dict(zip(self.statistics[name], self.tensors[name][row], strict=True))
        deviation = np.sqrt(of["squares"] / of["count"])
        if deviation < max(of["floor"], abs(of["mean"]) / 2**52):
            deviation = 1.0
        return of["mean"], deviation, of.get("clip", 0) or np.inf

    def pairs(self, column: Mapping[str, Any], given: list[Any]) -> np.ndarray:
        """The pooled rows of indexes or names, each times its number."""
        table, rows = self.tensors[column["table"]], []
        for key, value in given[: column["most"]]:
            named = isinstance(key, str) and not key.isdigit()
            hashed = murmur3(str(key).encode(), column["hash_seed"]) % column["buckets"]
            rows.append(value * table[hashed if named else int(key)].astype(float))
        return self.pooled(column, np.array(rows).reshape(-1, table.shape[1]))

    def pooled(self, column: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
        """The sum, the mean or of each column the largest."""
        if not len(rows):
            return np.zeros(rows.shape[1])
        return np.asarray({"sum": rows.sum, "mean": rows.mean, "max": rows.max}[column["pool"]](axis=0))

    def bag(self, column: Mapping[str, Any], texts: list[str]) -> list[float]:
        """The pooled rows of some texts."""
        buckets = [murmur3(text.encode(), column["hash_seed"]) % column["buckets"] for text in texts]
        bag = self.tensors[column["table"]][buckets[: column["most"]]].astype(float)
        total: list[float] = self.pooled(column, bag).tolist()
        return total

    def layer(self, layer: Mapping[str, Any], x: np.ndarray) -> np.ndarray:
        """The output of a layer for one row."""
        if layer["layer"] == "dropout":
            return x
        if layer["layer"] == "cross":
            crossed = x
            for at in range(layer["depth"]):
                weight, bias = (self.tensors[layer[f"{at}.{part}"]] for part in ("weight", "bias"))
                crossed = x * (crossed @ weight + bias) + crossed
            return crossed
        of = {part: self.tensors[layer[part]] for part in ("weight", "bias", "scale", "shift") if part in layer}
        if layer["layer"] == "dense":
            z = x @ of["weight"] + of["bias"]
        elif layer["layer"] == "batch_norm":
            mean, variance = (self.tensors[layer[f"running_{part}"]].astype(float) for part in ("mean", "variance"))
            z = (x - mean) / np.sqrt(variance + layer["epsilon"]) * of["scale"] + of["shift"]
        else:
            apart = x - x.mean() if layer["layer"] == "layer_norm" else x
            z = apart / np.sqrt((apart**2).mean() + layer["epsilon"]) * of["scale"] + of.get("shift", 0)
        return np.asarray(ACTIVATIONS[layer["activation"]](z))

    def predict(self, row: Mapping[str, Any]) -> np.ndarray:
        x: list[float] = []
        wide: Any = 0.0  # what goes past the layers
        for column in self.inputs:
            cell = row.get(column["name"], column["missing"])
            if column["kind"] == "vector":
                for at, number in enumerate(cell if isinstance(cell, list) else [cell] * column["size"]):
                    if "moments_row" in column:
                        mean, deviation, clip = self.moments("standardize.vectors", column["moments_row"] + at)
                        number = mean if number == "mean" else number
                        number = float(np.clip((number - mean) / deviation, -clip, clip))
                    x.append(number)
            elif column["kind"] == "sparse":
                total = self.pairs(column, list(cell.items() if isinstance(cell, dict) else cell or []))
                if column["embed"]:
                    x += total.tolist()
                else:
                    wide = wide + total
            elif column["kind"] == "text":
                pooled = self.bag(column, entries(column, str(cell)))
                if column["embed"]:
                    x += pooled
                else:
                    wide = wide + np.array(pooled)
            elif column.get("list"):
                given = [cell] if isinstance(cell, str) and cell else list(cell)
                x += self.bag(column, [str(each).lower() if isinstance(each, bool) else str(each) for each in given])
            elif column["kind"] == "category":
                text = str(cell).lower() if isinstance(cell, bool) else str(cell)
                bucket = murmur3(text.encode(), column["hash_seed"]) % column["buckets"]
                x += self.tensors[column["table"]][bucket].tolist()
            elif "moments_row" in column:
                mean, deviation, clip = self.moments("standardize.numbers", column["moments_row"])
                cell = mean if cell == "mean" else cell
                x.append(float(np.clip((cell - mean) / deviation, -clip, clip)))
            else:
                x.append(cell)
        y = np.array(x or [0.0])
        for layer in self.layers:
            y = self.layer(layer, y)
        y = y + wide
        seen = self.tensors.get("label.classes", np.zeros(0)) + 0.5
        if self.metadata["loss"] == "softmax_cross_entropy":
            return seen * np.exp(y) / (seen * np.exp(y)).sum()
        if self.metadata["loss"] == "binary_cross_entropy":
            return 1 / (1 + np.exp(-y - np.log(seen[1] / seen[0])))
        if "standardize.label" in self.statistics:
            mean, deviation, _ = self.moments("standardize.label", 0)
            y = y * deviation + mean
        return y
