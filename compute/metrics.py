"""Quality from score blocks: log_loss, auc, accuracy, …; or mae, rmse, r2; the constant prediction's beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamtrain import _native
from streamtrain.compute import confusion, curves
from streamtrain.compute.ops.score_binary import MOMENTS
from streamtrain.compute.ops.score_top import TOPS
from streamtrain.compute.spec import Array

CONSTANT = "constant_"   # prefix of the constant prediction's figures
LOSS = "loss"            # what is minimised
GRADIENT = "score.gradient"   # the block of a training's gradients, by which no model is judged
AMOUNTS = ("rows", "weight")   # what figures are of
LOWER = ("log_loss", "rmse", "mae", "normalized_entropy", "calibration_error")   # is better
TOP = tuple(f"top_{most}_accuracy" for most in TOPS)
HIGHER = ("auc", "accuracy", "average_precision", *confusion.FIGURES, *confusion.MACRO, "r2", *TOP)
Figures = dict[str, Any]   # numbers by name; the confusion matrix is rows of numbers
PLACE_ERROR = 1e-3       # of a place in a bin, from float32 logits


def summary(scores: Mapping[str, Array]) -> Figures:
    """Figures of score blocks as `Model.scores` gives them, of a snapshot or of the difference of two (a window).

    Binary: log_loss, auc, accuracy; classes: log_loss, accuracy; regression: mae, rmse; each also as constant_<name>.
    Of both kinds of classes normalized_entropy, the log loss over the constant's (He et al.: Practical lessons from
    predicting clicks on ads, 2014); binary: average_precision, precision, recall, f1, calibration, calibration_error;
    regression: r2; classes: top_5_accuracy, top_10_accuracy and top_100_accuracy where there are more, macro_precision,
    macro_recall and macro_f1 of up to 64; of these and of binary confusion_matrix, the weight of rows by label and
    predicted class. `loss` is what is minimised and `constant_loss` that of the constant prediction, in
    the label's unit also where it is standardised (a squared error in its square); of classes they are there where they
    are not the log loss. What has no value, as r2 of equal labels, is left out.

    All are weighted; `rows` and `weight` are those they are of, rows of weight 0 left out. Without any weight only
    these two are there.

    gradient_norm is the mean norm of the updates' gradients before they were clipped; there where it is clipped by
    norm.

    Of a model of several heads rows, weight and loss, the weighted sum of theirs, standardised labels in deviations;
    and each head's, "late.log_loss", over the rows that have its label.
    """
    heads = dict.fromkeys(head for head, _ in map(_parts, scores) if head)
    found = _of_heads(scores, heads) if heads else _figures(scores)
    norms, updates = (float(each) for each in scores.get(GRADIENT, np.zeros(2)).reshape(-1))
    return found | ({"gradient_norm": norms / updates} if updates > 0 else {})


def _of_heads(scores: Mapping[str, Array], heads: Iterable[str]) -> Figures:
    loss, weight = (float(each) for each in scores["score.loss"].reshape(-1))
    figures: Figures = {"rows": int(scores["score.rows"].reshape(-1)[0]), "weight": weight}
    figures |= {LOSS: loss / weight} if weight > 0 else {}
    for head in heads if weight > 0 else ():
        own = {f"score.{part}": scores[name] for name in scores for of, part in [_parts(name)] if of == head}
        figures |= {f"{head}.{name}": figure for name, figure in _figures(own).items()}
    return figures


def _parts(block: str) -> tuple[str, str]:
    """The head, "" of one alone, and the rest of a score block's name."""
    head, _, part = block.removeprefix("score.").rpartition(".")
    return head, part


def by_head(figures: Mapping[str, Any]) -> dict[str, Figures]:
    """Figures by the head they are of and then by their names; "": of the model."""
    found: dict[str, Figures] = {}
    for name, figure in figures.items():
        head, _, own = name.rpartition(".")
        found.setdefault(head, {})[own] = figure
    return found


def constant_of(name: str) -> str:
    """The name of the constant prediction's figure beside the model's."""
    head, dot, own = name.rpartition(".")
    return f"{head}{dot}{CONSTANT}{own}"


def is_amount(name: str) -> bool:
    """Returns whether it is an amount that figures are based on, and not a figure itself."""
    return name.rpartition(".")[2] in AMOUNTS


def _figures(scores: Mapping[str, Array]) -> Figures:
    loss = scores["score.loss"].reshape(-1)
    weight = float(loss[1])
    figures: Figures = {"rows": int(scores["score.rows"].reshape(-1)[0]), "weight": weight}
    if weight <= 0:
        return figures
    if "score.errors" in scores:
        errors = scores["score.errors"].reshape(-1)
        linear, square, of_label, constant_linear, constant_square = (float(e) / weight for e in errors)
        variance = of_label - (float(loss[3]) / weight) ** 2
        figures |= {"loss": float(loss[0]) / weight, CONSTANT + "loss": float(loss[2]) / weight}
        return figures | {
            "mae": linear, "rmse": math.sqrt(square), CONSTANT + "mae": constant_linear,
            CONSTANT + "rmse": math.sqrt(constant_square),
        } | ({"r2": 1 - square / variance} if variance > 1e-12 * of_label else {})
    right, constant_right = (float(hit) / weight for hit in scores["score.hits"].reshape(-1))
    figures |= {"log_loss": float(loss[0]) / weight, CONSTANT + "log_loss": float(loss[2]) / weight}
    if "score.objective" in scores:
        objective, constant_objective = (float(each) / weight for each in scores["score.objective"].reshape(-1))
        figures |= {"loss": objective, CONSTANT + "loss": constant_objective}
    figures |= {"accuracy": right, CONSTANT + "accuracy": constant_right}
    if "score.histogram" in scores:
        figures |= _binary(scores["score.histogram"].reshape(2, -1, MOMENTS)) | _exact(scores)
    if "score.top" in scores:
        figures |= {name: float(top) / weight for name, top in zip(TOP, scores["score.top"], strict=False)}
    if "score.confusion" in scores:
        figures |= confusion.macro(scores["score.confusion"])
    constant = figures[CONSTANT + "log_loss"]
    return figures | ({"normalized_entropy": figures["log_loss"] / constant} if constant > 0 else {})


def names(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Returns the figures that a model is scored by, from the shapes of its blocks by name."""
    blocks = {name: np.ones(shape) for name, shape in shapes.items() if name.startswith("score.") and name != GRADIENT}
    for name in blocks:
        if _parts(name)[1] == LOSS:
            blocks[name].reshape(-1)[3:] = 0   # labels that vary: no figure lacks its denominator
    return [name for name in numbers(summary(blocks)) if not is_amount(name)]


def numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    """Returns the figures that are a number."""
    return {name: figure for name, figure in figures.items() if isinstance(figure, int | float)}


def usual(known: Sequence[str]) -> str:
    """Returns the name that training is scored by where nobody says otherwise."""
    return next((name for name in LOWER if name in known), LOSS)


def ranked(known: Sequence[str]) -> list[str]:
    """Returns the names for which it is known whether less is better. The loss of one head is reported by another
    figure."""
    several = any("." in name for name in known)
    return [name for name in known if name.rpartition(".")[2] in LOWER + HIGHER or (several and name == LOSS)]


def is_lower_better(name: str) -> bool:
    """Returns whether less is better, for a ranked name."""
    return name == LOSS or name.rpartition(".")[2] in LOWER


def better(score: float, before: float, minimise: bool, least: float = 0.0) -> bool:
    """By more than `least`; a score that is not finite is never better."""
    return math.isfinite(score) and (score < before - least if minimise else score > before + least)


def reaches(score: float, target: float, minimise: bool) -> bool:
    """Returns whether a score is at least as good as the target. A score that is not finite never is."""
    return math.isfinite(score) and (score <= target if minimise else score >= target)


def _binary(histogram_lbm: Array) -> Figures:
    weights = histogram_lbm[..., 0].astype(np.float64)
    figures = {"auc": auc(histogram_lbm), CONSTANT + "auc": 0.5, "average_precision": curves.average_precision(weights)}
    return figures | confusion.of_the_positive(curves.at_half(weights)) | curves.calibration(histogram_lbm)


def is_of_one_window(block: str) -> bool:
    """Returns True for a tally and for its figures. Other scores grow from window to window."""
    return block.endswith((_native.DISTINCT, _native.CURVES))


def _exact(scores: Mapping[str, Array]) -> Figures:
    """Returns AUC and average precision from a tally, or as a closed window has them; nothing of too many logits."""
    if f"score.{_native.CURVES}" in scores:
        found = tuple(scores[f"score.{_native.CURVES}"].reshape(-1).tolist())
    elif f"score.{_native.DISTINCT}" in scores:
        found = _native.binary_curves(np.array(scores[f"score.{_native.DISTINCT}"]))   # of a snapshot it is read-only
    else:
        return {}
    return {} if found[0] < 0 else dict(zip(("auc", "average_precision"), found, strict=True))


def auc(histogram_lbm: Array) -> float:
    """Area under the ROC curve, from sums of weight, weight x and weight x^2 by label and bin of the logit, x the place
    in the bin. 0.5 if a label is missing; equal logits count half.

    At most 1e-3 off from base rates of 1e-5 on and logits that spread by 0.05 or more, over 100,000 rows (tested
    against scikit-learn).
    """
    weights = histogram_lbm[..., 0].astype(np.float64)
    negative, positive = weights
    pairs = negative.sum() * positive.sum()
    if pairs <= 0:
        return 0.5
    seen = np.where(weights > 0, weights, 1)
    mean, square = (np.where(weights > 0, histogram_lbm[..., power] / seen, 1 / (power + 1)) for power in (1, 2))
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative * _lower(negative >= positive, mean, square))).sum() / pairs)


def _lower(heavier: Array, mean_lb: Array, square_lb: Array) -> Array:
    """By bin: the share of pairs within it in which the negative row lies lower. `heavier`: it holds more negative.

    Rows of the label with more weight are taken to lie as a density 1 + slope (x - 1/2) of their mean, where their
    variance is about that of one; else (a few rows, or equal ones) both labels as logistic distributions.
    """
    mean, square, other_mean, other_square = (
        np.asarray(np.where(heavier, one, other), np.float64)
        for one, other in (mean_lb, square_lb, mean_lb[::-1], square_lb[::-1])
    )
    variance, other_variance = square - mean**2, other_square - other_mean**2
    expected = 1 / 12 - (mean - 0.5) ** 2
    slope = 12 * (mean - 0.5)
    dense = other_mean + slope / 2 * (other_square - other_mean)
    spread = np.sqrt(np.maximum(variance + other_variance, PLACE_ERROR**2))
    apart = (other_mean - mean) / spread
    few = 1 / (1 + np.exp(-1.702 * np.where(abs(apart) < 1e-3, 0, apart).clip(-50, 50)))   # about the normal's
    lower = np.where((variance > 0.7 * expected) & (variance < 1.4 * expected), dense, few).clip(0, 1)
    return np.asarray(np.where(heavier, lower, 1 - lower))
