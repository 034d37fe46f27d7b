"""How much of each row looks ahead without a mask: a curve, a table and a sentence."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import PlotBlock, TableBlock
from attnviz.figure.plots import Curve, Plot
from attnviz.figure.tables import Table, table_of
from attnviz.figures import Figure
from attnviz.questions.future_share import FutureShareAnswer, FutureShareQuestion


def _tr(text: str) -> str:
    return QCoreApplication.translate("LooksAheadPage", text)


def share_plot(answer: FutureShareAnswer) -> Plot:
    """Percent of each row's weight on the future, beside what equal weights give."""
    rows = range(len(answer.unmasked))
    mean = _tr("no mask, mean of {n} draws").format(n=answer.done)
    dots = len(rows) <= 64
    return Plot(
        curves=(
            Curve([*rows], answer.unmasked, mean, "leak", dots=dots),
            Curve([*rows], answer.theory, _tr("equal weights"), "muted", dashed=True),
            Curve([*rows], answer.masked, _tr("masked"), "accent", dots=dots),
        ),
        x_label=_tr("row"),
        y_label=_tr("% of the row's weight on the future"),
        y_range=(0.0, 100.0),
        x_names=tuple((float(row), str(row)) for row in rows),
    )


def share_table(answer: FutureShareAnswer) -> Table:
    """The same in numbers, a line a row."""
    columns = answer.unmasked, answer.theory, answer.masked
    return table_of(
        [_tr("row"), _tr("no mask"), _tr("equal"), _tr("masked")],
        [(str(row), *(f"{numbers[row]:.1f} %" for numbers in columns)) for row in range(len(answer.unmasked))],
    )


def share_words(answer: FutureShareAnswer) -> str:
    """What it says, in a sentence."""
    return _tr(
        "Over {draws} random draws of {length} tokens row 0 gives {first} % of its weight to words that are not "
        "written yet; equal weights would give {theory} %. The last row has nothing ahead of it. A mask makes it 0 "
        "everywhere."
    ).format(
        draws=answer.done, length=len(answer.unmasked), first=f"{answer.unmasked[0]:.1f}",
        theory=f"{answer.theory[0]:.1f}",
    )  # fmt: skip


def contents_of(figure: Figure, answer: FutureShareAnswer) -> Contents:
    """The plot and its table."""
    asked = figure.question if isinstance(figure.question, FutureShareQuestion) else FutureShareQuestion()
    settings = _tr("Q and K drawn at random × {scale} · {length} tokens · {d} dimensions · {n} draws · seed {seed}")
    return Contents(
        title=_tr("Who looks ahead without a mask?"),
        blocks=(
            PlotBlock(share_plot(answer), _tr("the curve"), weight=1.5, part="curve"),
            TableBlock(share_table(answer), _tr("the shares in numbers"), weight=0.5, part="table"),
        ),
        circumstances=settings.format(
            scale=f"{asked.qk_scale:g}", length=asked.length, d=asked.d, n=asked.draws, seed=asked.seed
        ),
        sentence=share_words(answer),
    )
