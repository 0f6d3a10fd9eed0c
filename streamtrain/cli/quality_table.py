"""Progressive quality for people: a table of figures beside the constant prediction's, and a trend as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from streamtrain.cli.output import SCORES
from streamtrain.compute.metrics import by_head

Scores = Mapping[str, float]
LOSSES = ("loss", "log_loss", "rmse")  # what a trend is shown of: the first there is
FIGURE_WIDTH = 6  # columns: where the terminal is narrower than all of them, the last are cut, not each
BARS = "▁▂▃▄▅▆▇█"
BAR_WINDOWS = 48  # newest ones shown


def quality_table(spans: Mapping[str, Scores]) -> Table:
    """A row a span ("in total", "last 10,000"), and each head of several; a column a figure; a figure none of them has
    is left out."""
    spans = {f"{span}, {head}" if head else span: figures
             for span, scores in spans.items() for head, figures in by_head(scores).items()}  # fmt: skip
    titles = [(title, key) for title, key in SCORES if any(key in scores for scores in spans.values())]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    table.add_column(style="bold", min_width=FIGURE_WIDTH)
    for title, _ in titles:
        table.add_column(title, justify="right", style="bold green", header_style="bold", min_width=FIGURE_WIDTH)
        table.add_column("constant", justify="right", style="dim", min_width=FIGURE_WIDTH)
    for name, scores in spans.items():
        cells = [cell for _, key in titles for cell in (score(scores, key), score(scores, f"constant_{key}"))]
        table.add_row(name, *cells)
    return table


def window_name(window: Scores) -> str:
    """`last 10,000`: the rows the window holds."""
    return f"last {window['rows']:,.0f}" if window else "last 10,000"


def score(scores: Scores, key: str) -> str:
    return f"{scores[key]:.4f}" if key in scores else "-"


def trend(windows: Sequence[Scores]) -> Text | None:
    """Each window's loss as a share of the constant prediction's: some stretches are harder than others."""
    loss = next((name for name in LOSSES if windows and name in windows[-1]), None)
    if loss is None:
        return None
    usable = [window for window in windows if window.get(loss) is not None and window.get(f"constant_{loss}")]
    shares = [window[loss] / window[f"constant_{loss}"] for window in usable][-BAR_WINDOWS:]
    if not shares:
        return None
    text = Text(f"share of the constant's {loss.replace('_', ' ')}  ", "bold")
    text.append(bars(shares), "green")
    return text.append(f"  {shares[0]:.0%} … {shares[-1]:.0%}", "dim")


def bars(values: Sequence[float]) -> str:
    """One bar a value, from the lowest of them to the highest."""
    low, high = min(values), max(values)
    step = (high - low) / (len(BARS) - 1) or 1.0
    return "".join(BARS[round((value - low) / step)] for value in values)
