"""DeepFM (Guo, Tang, Ye, Li, He: DeepFM: a factorization-machine based neural network for CTR prediction; IJCAI 2017)
as a PyTorch module: `[model] torch = "deepfm:DeepFM"`. The network of flights_deepfm.toml.
"""

from __future__ import annotations

from torch import Tensor, nn

from streamtrain.integrations.torch import Inputs


class DeepFM(nn.Module):
    """Logits [rows, outputs] of float32 [rows, width]: linear in all inputs, plus products of pairs of categories, plus
    a deep network over everything."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        numbers = inputs.columns["numbers"]
        tables = [part for part in inputs.columns.values() if part.stop - part.start > 1 and part != numbers]
        widths = {part.stop - part.start for part in tables}
        if len(widths) != 1:
            raise ValueError(f"expected categories of one embed, got {sorted(widths)}")
        self.first, self.width = tables[0].start, widths.pop()
        self.end = self.first + len(tables) * self.width
        self.linear = nn.Linear(inputs.width, inputs.outputs)
        self.deep = nn.Sequential(
            nn.Linear(inputs.width, 64), nn.ReLU(), nn.Dropout(0.05), nn.Linear(64, 32), nn.ReLU(),
            nn.Linear(32, inputs.outputs),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        factors = x[:, self.first : self.end].view(len(x), -1, self.width)
        pairs = (factors.sum(1).square() - factors.square().sum(1)).sum(1, keepdim=True) / 2
        return self.linear(x) + pairs + self.deep(x)
