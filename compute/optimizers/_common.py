"""The options that every optimizer takes, and the groups of parameters that may have settings of their own."""

from __future__ import annotations

from streamtrain.compute.options import Number, Option

GROUPS = ("weight", "bias", "norm", "embedding")   # norm: scale and offset of a normalisation
FEW = ("bias", "norm")   # shrinking them costs fit and saves nothing: 0 for them unless their own table says another
SHRINKING = ("l1", "l2", "weight_decay")
OF_ALL = ("clip_norm",)   # not of a group

SETTINGS = ("end", "rate_factor", "l1", "l2", "weight_decay", "clip_value")   # as kernels have them (base/update.h)
KEPT = ("a", "b", "c")   # what a formula keeps for each parameter, at most

COMMON: dict[str, Option] = {
    "l1": Number(least=0, default=0.0, help="times |p| is added to the loss; of weights and embeddings"),
    "l2": Number(least=0, default=0.0, help="times p^2 / 2 is added to the loss; of weights and embeddings"),
    "weight_decay": Number(
        least=0, default=0.0, help="p shrinks by learning_rate times this, a step, beside the loss; of weights and "
        "embeddings"
    ),
    "rate_factor": Number(least=0, default=1.0, help="times the learning rate; of use in a group"),
    "clip_value": Number(least=0, default=0.0, help="the largest |g| of a parameter; 0: no limit"),
    "clip_group_norm": Number(least=0, default=0.0, help="the largest norm of a group's gradient; 0: no limit"),
    "clip_norm": Number(least=0, default=0.0, help="the largest norm of the whole gradient; 0: no limit"),
    "max_norm": Number(
        least=0, default=0.0, help="the largest norm of the weights that lead to one output of a layer; 0: no limit"
    ),
}
