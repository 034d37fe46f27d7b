"""How rows, numbers and scales are told in a study, on a page and on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from attnviz.colour import LINEAR_UP_TO_KEYS, choose_scale
from attnviz.figure import marks
from attnviz.figures import Figure
from attnviz.frames import Crop, Scale
from attnviz.questions.dropout import DropoutQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.spec import WEIGHT_STAGES, View


def row_name(row: int, tokens: Sequence[str], n_queries: int) -> str:
    """The number of query ``row`` and its token: "1 · 吃"; the number alone where the token says no more.

    ``tokens`` name the keys, whose last ``n_queries`` ask.
    """
    place = row + len(tokens) - n_queries
    token = tokens[place] if 0 <= place < len(tokens) else ""
    return f"{row:,} · {token}" if token and token != str(row) else f"{row:,}"


def head_words(figure: Figure) -> str:
    """Which head a study of one looks at: "head 0"; "" where there is one alone."""
    asked = figure.question
    spec = asked.spec if isinstance(asked, DropoutQuestion | RoundsQuestion) else figure.spec
    return QCoreApplication.translate("Figure", "head {0}").format(figure.head) if spec.num_heads > 1 else ""


def short_number(value: float) -> str:
    """A number of any size in few characters: 0, 0.36, 0.80, 6e−8, ∞, NaN."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 0.1 <= abs(value) < 1:  # 0.80 stands beside 0.83
        return f"{value:.2f}".replace("-", "−")
    return f"{value:.2g}".replace("e-0", "e−").replace("e+0", "e").replace("e-", "e−").replace("-", "−")


def crop_caption(crop: Crop, stage: str) -> str:
    """Which cells of a map are shown, and what is told of the whole map all the same; "" of a whole one."""
    if crop.is_whole:
        return ""
    words = QCoreApplication.translate("Figure", "colours and words are of the whole map")
    if stage in WEIGHT_STAGES:
        words = QCoreApplication.translate("Figure", "row sums are of all keys, colours and words of the whole map")
    return f"{marks.crop_words(crop, stage)} · {words}"


def scale_in(view: View, own: Scale, n_keys: int) -> Scale:
    """The view's scale of short weights, where it is one for all maps; else ``own``: one number, one colour."""
    if n_keys <= LINEAR_UP_TO_KEYS and view.norm in ("unit", "log"):
        return choose_scale("weights", view.norm, n_keys, 0.0, own.high)
    return own


def bar_view(view: View) -> View:
    """What a colour bar of such a scale is labelled as."""
    return View(colours=view.colours, norm=view.norm if view.norm in ("unit", "log") else "auto")
