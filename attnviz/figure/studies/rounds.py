"""Generating token by token: a round's map, its last row over the same row of the one pass, and what each way costs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from PySide6.QtCore import QCoreApplication

from attnviz.figure import marks
from attnviz.figure.axes import number_words
from attnviz.figure.block_sheet import Contents
from attnviz.figure.blocks import Block, CountsBlock, Headed, PlotBlock
from attnviz.figure.counts import Count
from attnviz.figure.map_blocks import MapsBlock
from attnviz.figure.matrix_map import Matrix, matrix_of
from attnviz.figure.plots import Bars, Curve, Plot, apart
from attnviz.figure.studies.names import bar_view, head_words, row_name
from attnviz.figures import Figure
from attnviz.frames import CellClass, Scale
from attnviz.questions.rounds import RoundsAnswer, RoundsQuestion, cells_cached, cells_in_one_pass, cells_recomputed
from attnviz.spec import AttentionSpec, Colours, edited

_EPS: Final = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_ROUNDING: Final = 16
"""Differences of so many steps of the dtype are rounding: the products are cut in another way."""

NAMED: Final = 32
"""So many tokens are named."""


def _tr(text: str) -> str:
    return QCoreApplication.translate("RoundsPage", text)


def pass_words(spec: AttentionSpec | None) -> str:
    """What the one pass is called: masked, where there is a mask."""
    return _tr("one pass") if spec is not None and spec.mask == "none" else _tr("one masked pass")


def told(answer: RoundsAnswer, spec: AttentionSpec | None) -> str:
    """Whether each round sees what the one pass showed, in words."""
    whole = pass_words(spec)
    if answer.exact:
        return _tr(
            "Every round's last row is the same row of {whole}, to the last digit: the pass practises all {n} "
            "questions as writing asks them."
        ).format(n=answer.total, whole=whole)
    if spec is not None and answer.worst <= _ROUNDING * _EPS[spec.dtype]:
        return _tr(
            "Every round's last row is the same row of {whole}, up to rounding ({worst}): the pass practises all {n} "
            "questions as writing asks them."
        ).format(n=answer.total, worst=number_words(answer.worst), whole=whole)
    if math.isnan(answer.worst):
        return _tr("A row is NaN in one of the two alone: training would not practise what generation does.")
    place = int(np.argmax(answer.differences))
    said = _tr(
        "The last row of round {n} and row {row} of the one pass differ by {worst}, those of the last round by {last}: "
        "training would not practise what generation does."
    ).format(
        worst=_short(answer.worst), n=f"{place + 1:,}", row=row_name(place, answer.tokens, answer.total),
        last=_short(float(answer.differences[-1])),
    )  # fmt: skip
    unmasked = spec is not None and spec.mask == "none"
    why = _tr("A mask makes them the same.") if unmasked else _tr("With this mask what comes later matters.")
    return f"{said} {why}"


def round_words(answer: RoundsAnswer, n: int) -> str:
    """Which round, and what it has read."""
    words = _tr("round {n} of {total}").format(n=f"{n:,}", total=f"{answer.total:,}")
    if answer.total <= NAMED:
        read = " ".join(answer.tokens[:n])
        words += _tr(": it has read “{read}”").format(read=read if len(read) <= 48 else "… " + read[-46:])
    return words


def round_map(answer: RoundsAnswer, n: int, colours: Colours) -> Matrix:
    """Round ``n``'s map in the room of the last one's; rows that are computed once more are pale."""
    total = answer.total
    values, kinds = np.zeros((total, total)), np.full((total, total), int(CellClass.ORDINARY), np.uint8)
    grown = answer.maps[n - 1]
    values[:n, :n] = grown
    kinds[:n, :n][np.isnan(grown)] = int(CellClass.NAN)
    kinds[:n, :n][answer.hidden_maps[n - 1] & (grown == 0)] = int(CellClass.MASKED)
    pale = _tr("pale: computed before, and thrown away") if n > 1 else " "  # its line stays free
    thrown = _tr("1 row is thrown away") if n == 2 else _tr("{n} rows are thrown away").format(n=n - 1)
    return matrix_of(
        values, kinds, scale=Scale(0.0, 1.0), colours=colours, tokens=answer.tokens,
        title=_tr("round {n}").format(n=n) + (f": {thrown}" if n > 1 else ""),
        caption=pale, faded=n - 1, row=n - 1, grown=n,
    )  # fmt: skip


def row_plot(answer: RoundsAnswer, n: int, *, moving: bool = False) -> Plot:
    """Round ``n``'s last row over the same row of the one pass.

    Of many tokens a round has an axis of its own; where rounds are ``moving`` by, they all have one, which is
    logarithmic as that of a long map's colours: of the first token's whole weight the last row would be a line at 0.
    """
    total, row = answer.total, answer.whole[n - 1]
    grown = np.zeros(total)
    grown[:n] = answer.last_rows[n - 1]
    named = total <= NAMED
    both = np.concatenate([grown, row])
    both = both[np.isfinite(both)]
    most = 1.0 if total <= NAMED else 1.1 * float(both.max() if both.size else 1.0)
    ours, whole = _tr("round {n}, last row").format(n=n), _tr("one pass, row {n}").format(n=n - 1)
    if moving:  # the legend stands still
        ours, whole = _tr("the round's last row"), _tr("the same row of the one pass")
    bars: tuple[Bars, ...] = (apart(grown, label=ours), apart(row, label=whole, role="ink", outline=True))
    curves: tuple[Curve, ...] = ()
    if not named:  # a thousand bars would take the screen's thread longer than a frame
        keys = np.arange(total)
        bars, curves = (), (Curve(keys, grown, ours), Curve(keys, row, whole, "amber", dashed=True))
    log = moving and not named
    return Plot(
        bars=bars,
        curves=curves,
        y_label=_tr("weight"),
        y_log=log,
        y_range=(0.1 / total, 1.0) if log else (0.0, most or 1.0),
        x_range=(-0.6, total - 0.4),
        x_names=tuple((float(place), token) for place, token in enumerate(answer.tokens)) if named else (),
        x_label="" if named else _tr("key"),
    )


def gap_words(answer: RoundsAnswer, n: int) -> str:
    """How far the two rows of round ``n`` are apart."""
    gap = float(answer.differences[n - 1])
    said = _tr("0, to the last digit") if gap == 0 else _short(gap)
    return _tr("largest difference of the two rows: {said}").format(said=said)


def counts_of(n: int, total: int, spec: AttentionSpec | None) -> tuple[Count, ...]:
    """Score cells that n rounds take, computed again or with a cache, and one pass."""
    squares = " + ".join(f"{k}²" for k in range(1, n + 1)) if n <= 3 else f"1² + 2² + … + {n}²"
    singles = " + ".join(map(str, range(1, n + 1))) if n <= 3 else f"1 + 2 + … + {n}"
    ways = (
        (_tr("computing all again"), squares, cells_recomputed),
        (_tr("with a key/value cache"), singles, cells_cached),
        (pass_words(spec), f"{n}²", cells_in_one_pass),
    )
    return tuple(
        Count(words, formula if n == 1 and formula == "1" else f"{formula} = {count(n):,}", count(n), count(total))
        for words, formula, count in ways
    )


def _short(value: float) -> str:
    """.81, 0, or a power of ten for what is small."""
    if value == 0 or not abs(value) >= 0.005:
        return number_words(value)
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.2f}"


# --------------------------------------------------------------------------------------------------------------- paper


def contents_of(figure: Figure, answer: RoundsAnswer) -> Contents:
    """The round of the figure's row, the last one by default."""
    return _contents_of(figure, answer, _last(figure, answer))


def moments_of(figure: Figure, answer: RoundsAnswer) -> list[Contents]:
    """Rounds one after the other, up to that of the figure's row, on one axis."""
    last = _last(figure, answer)
    found = [_contents_of(figure, answer, n, moving=True) for n in figure.moments(last)]
    return [*(replace(one, sentence="") for one in found[:-1]), found[-1]]


def _last(figure: Figure, answer: RoundsAnswer) -> int:
    return answer.done if figure.row is None else min(figure.row + 1, answer.done)


def _contents_of(figure: Figure, answer: RoundsAnswer, n: int, *, moving: bool = False) -> Contents:
    spec = figure.question.spec if isinstance(figure.question, RoundsQuestion) else figure.spec
    spec = edited(spec, training=False) if spec.drops else spec  # as the study computes it
    blocks: list[Block] = []
    if answer.maps:
        blocks.append(MapsBlock(
            (_said_briefly(round_map(answer, n, figure.view.colours), n),), _tr("the round's map"),
            bar_view(figure.view), weight=1.6, part="map",
        ))  # fmt: skip
    plot, gap = row_plot(answer, n, moving=moving), Headed(note=gap_words(answer, n))
    blocks.append(PlotBlock(plot, _tr("the two rows"), gap, weight=1.2, part="row"))
    costs = Headed(_tr("score cells up to round {n}").format(n=n))
    blocks.append(CountsBlock(counts_of(n, answer.total, spec), _tr("what each way costs"), costs, part="costs"))
    settings = round_words(answer, n), head_words(figure), marks.circumstances(spec)
    captions = () if answer.maps else (_tr("Each round's map is shown up to 64 tokens."),)
    return Contents(
        title=_tr("Generating token by token"),
        blocks=tuple(blocks),
        circumstances=" · ".join(filter(None, settings)),
        sentence=told(answer, spec) if answer.finished else "",
        captions=captions,
    )


def _said_briefly(one: Matrix, n: int) -> Matrix:
    """A round's map where the sheet has said which round it is: its words are one line."""
    pale = _tr("pale: 1 row thrown away") if n == 2 else _tr("pale: {n} rows thrown away").format(n=n - 1)
    return replace(one, title="", caption=pale if n > 1 else one.caption)
