"""Status line, banner, strips, module, keys: they say what stands on the screen, and no word widens the window."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QColor, QHelpEvent, QImage, QKeySequence
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QPushButton, QToolTip, QWidget

from attnviz import colour, rendering
from attnviz.engine import Engine
from attnviz.figure import cells
from attnviz.figure.fonts import load_fonts, sized, text_width
from attnviz.frames import CellClass, Failure, ProbeAnswer, Progress, RowQuestion
from attnviz.session import Cell, Snapshot
from attnviz.spec import (
    Full,
    Lesson,
    RandomEmbeddings,
    RandomQK,
    Text,
    TypedScores,
    View,
    Viewport,
    edited,
    make_spec,
    stages_of,
)
from attnviz.views import theme
from attnviz.views.actions import key_table
from attnviz.views.banner import Banner
from attnviz.views.keys_page import KeysPage
from attnviz.views.module_page import ModulePage
from attnviz.views.operations import operation
from attnviz.views.palette import Palette
from attnviz.views.pipeline_strip import PipelineStrip
from attnviz.views.sentence_card import SentenceCard
from attnviz.views.status_line import StatusLine
from attnviz.views.token_strip import TokenStrip

CAT = make_spec(Lesson(name="cat-eats-fish"), mask="none")
SIX_WORDS = ("Your", "journey", "starts", "with", "one", "step")
FAILED = Failure(1, "cuda:1 ran out of memory at <block 3>.", "Give it less.", "a long story")


def snapshot_of(spec, *, stage="weights", row=None):
    view = View(stage=stage)
    picture = rendering.collect(Engine(), spec, view, Viewport())
    return Snapshot(spec=spec, view=view, picture=picture, selected=None if row is None else Cell(row, 0))


def probed(snapshot, row, col, values, kind=CellClass.ORDINARY):
    answer = ProbeAnswer(snapshot.picture.generation, row, col, values, (kind,) * len(values))
    return replace(snapshot, selected=Cell(row, col), probe=answer)


@pytest.fixture
def shown(qtbot):
    load_fonts()

    def show(widget):
        qtbot.addWidget(widget)
        widget.show()
        return widget

    return show


# ------------------------------------------------------------------------------------------------------- status line


def state_of(line, snapshot):
    line.present(snapshot)
    return line._left.text().split(" · ")[0]


def test_the_state_is_exact_computing_stopped_or_failed(shown):
    line = shown(StatusLine())
    done = snapshot_of(make_spec())
    assert state_of(line, Snapshot(spec=CAT, view=View())) == "loading torch …"
    assert state_of(line, Snapshot(spec=CAT, view=View(), failure=FAILED)) == "failed"
    assert state_of(line, done) == "exact"
    assert state_of(line, replace(done, stale=True, running=True)) == "computing"
    assert state_of(line, replace(done, stale=True)) == "stopped"
    assert state_of(line, replace(done, stale=True, failure=FAILED)) == "the last good picture"
    assert state_of(line, replace(done, failure=FAILED)) == "exact"  # an export that failed
    before = replace(done, last=snapshot_of(CAT).picture, show_before=True)
    assert state_of(line, before) == "the state before"
    assert "1 head × 3 tokens" in line._left.text()


def test_sizes_are_those_of_the_picture_in_sight(shown):
    line = shown(StatusLine())
    line.present(replace(snapshot_of(make_spec()), spec=make_spec(num_heads=12), stale=True, running=True))
    assert "2 heads × 6 tokens" in line._left.text()
    line.present(snapshot_of(make_spec(RandomEmbeddings(length=1), num_heads=1, dropout=0.1)))
    assert "1 head × 1 token ·" in line._left.text()
    assert "dropout drawn by portable, seed 123" in line._left.text()
    line.present(snapshot_of(make_spec(Lesson(name="one-class"), dropout=0.5)))
    assert "the lesson's own draw" in line._left.text()


@pytest.mark.parametrize(
    ("spec", "stage", "cell", "values", "kind", "words"),
    [
        (CAT, "weights", (1, 2), (0.24472,), CellClass.ORDINARY, "query 吃 · key 鱼 · 0.2447"),
        (CAT, "weights", (1, 2), (0.0,), CellClass.MASKED, "query 吃 · key 鱼 · masked"),
        (CAT, "weights", (1, 2), (0.0,), CellClass.ZERO, "query 吃 · key 鱼 · exactly 0"),
        (CAT, "weights", (1, 2), (0.0,), CellClass.DROPPED, "query 吃 · key 鱼 · dropped"),
        (CAT, "weights", (1, 2), (float("nan"),), CellClass.NAN, "query 吃 · key 鱼 · NaN"),
        (CAT, "scaled_scores", (1, 2), (float("-inf"),), CellClass.ORDINARY, "query 吃 · key 鱼 · −∞"),
        (CAT, "context", (1, 1), (0.31,), CellClass.ORDINARY, "token 吃 · 鱼味 · 0.31"),
        (make_spec(), "weights", (1, 0), (0.4833, 0.44), CellClass.ORDINARY,
         "query journey · key Your · head 0 0.4833 · head 1 0.44"),
        (make_spec(), "keys", (1, 0), (-0.5, 0.5), CellClass.ORDINARY,
         "token journey · dimension 0 · head 0 −0.5 · head 1 0.5"),
        (make_spec(mask="three-step"), "row_sums", (1, 0), (0.37, 0.4), CellClass.ORDINARY,
         "token journey · head 0 0.37 · head 1 0.4"),
    ],
)  # fmt: skip
def test_the_cell_under_the_cross_hair_in_words(shown, spec, stage, cell, values, kind, words):
    line = shown(StatusLine())
    line.present(probed(snapshot_of(spec, stage=stage), *cell, values, kind))
    assert line._right.text() == words


def test_fewer_queries_than_keys_are_the_last_tokens(shown):
    line = shown(StatusLine())
    spec = make_spec(TypedScores(scores=((1.0, 2.0, 3.0),), tokens=("a", "b", "c")))
    line.present(probed(snapshot_of(spec), 0, 1, (0.5,)))
    assert line._right.text().startswith("query c · key b")


def test_numbers_of_another_picture_are_not_shown(shown):
    line = shown(StatusLine())
    snapshot = snapshot_of(make_spec())
    other = ProbeAnswer(snapshot.picture.generation + 1, 20, 20, (0.1, 0.1), (CellClass.ORDINARY,) * 2)
    line.present(replace(snapshot, selected=Cell(20, 20), probe=other))
    assert line._right.text() == ""


def test_numbers_that_n_hides_are_hidden_here_too(shown):
    line = shown(StatusLine())
    snapshot = probed(snapshot_of(CAT), 1, 2, (0.2447,))
    line.present(snapshot)
    assert line._right.text() == "query 吃 · key 鱼 · 0.2447"
    line.present(replace(snapshot, show_numbers=False))
    assert line._right.text() == "query 吃 · key 鱼"
    masked = probed(snapshot_of(edited(CAT, mask="neg-inf")), 1, 2, (0.0,), CellClass.MASKED)
    line.present(replace(masked, show_numbers=False))
    assert line._right.text() == "query 吃 · key 鱼 · masked"  # that is seen all the same


def test_many_heads_give_the_number_of_the_one_looked_at(shown):
    line = shown(StatusLine())
    snapshot = probed(snapshot_of(make_spec(num_heads=8)), 0, 0, tuple(n / 10 for n in range(8)))
    line.present(snapshot)
    assert line._right.text().endswith("head 0 0")
    picture = replace(snapshot.picture, view=View(head=5))
    line.present(replace(snapshot, view=View(head=5), picture=picture))
    assert line._right.text().endswith("head 5 0.5")


def test_progress_and_cancel_appear_only_when_it_takes_long(qtbot, shown):
    line = shown(StatusLine())
    snapshot = replace(snapshot_of(make_spec()), running=True, progress=Progress(1, 3, 12))
    line.present(snapshot)
    assert line._cancel.isHidden()
    qtbot.waitUntil(lambda: not line._cancel.isHidden())
    assert (line._progress.value(), line._progress.maximum()) == (3, 12)
    with qtbot.waitSignal(line.cancelled):
        qtbot.mouseClick(line._cancel, Qt.MouseButton.LeftButton)
    line.present(replace(snapshot, running=False, progress=None))
    assert line._cancel.isHidden()
    line.present(snapshot)
    assert line._cancel.isHidden()
    line.present(replace(snapshot, running=False, progress=None))  # a blink: the timer is called off
    assert not line._slow.isActive()


def test_stop_is_there_while_something_is_written_and_a_report_stays_beside_it(qtbot, shown):
    line = shown(StatusLine())
    line.say("copied")
    assert line.stop.isHidden()
    line.show_writing("writing a.gif · 40 %", "1 more to write", stops="a.gif")
    assert line._said.text() == "writing a.gif · 40 % · 1 more to write · copied"
    assert "a.gif" in line.stop.toolTip()
    with qtbot.waitSignal(line.stop_asked):
        qtbot.mouseClick(line.stop, Qt.MouseButton.LeftButton)
    line.show_writing("stopping a.gif …")
    assert line.stop.isVisible()
    assert not line.stop.isEnabled()
    line.show_writing()
    assert line.stop.isHidden()
    assert line._said.text() == "copied"


def test_all_that_may_stand_in_the_line_has_room_in_a_small_window(shown):
    line = shown(StatusLine())
    snapshot = snapshot_of(make_spec(Text(text="a" * 400 + " b"), num_heads=2))
    line.present(replace(probed(snapshot, 1, 0, (0.5, 0.5)), progress=Progress(1, 3, 12)))
    line.show_writing("writing " + "x" * 400, stops="a.gif")
    line._show_slow(True)
    assert line.minimumSizeHint().width() <= 1024


def test_previews_are_counted_and_the_overview_behind_what_is_exact(shown):
    line = shown(StatusLine())
    done = snapshot_of(make_spec())
    assert state_of(line, replace(done, running=True, progress=Progress(1, 3, 12))) == "computing"
    assert (
        state_of(line, replace(done, running=True, progress=Progress(1, 3, 12, preview=2, previews=4))) == "preview 2/4"
    )
    assert state_of(line, done) == "exact"
    behind = replace(done, progress=Progress(1, 43, 100, background=True))
    assert state_of(line, behind) == "exact"
    assert line._left.text().split(" · ")[1] == "overview 43 %"
    assert line._cancel.isHidden()
    assert not line._slow.isActive()


@pytest.mark.parametrize(("pooling", "words"), [
    ("max", "brightest of 8 × 8 cells"), ("mean", "mean of 8 × 8 cells"),
    ("share", "share of the row's mass, 8 keys wide"),
])  # fmt: skip
def test_what_a_pixel_is_stands_in_words(shown, pooling, words):
    line = shown(StatusLine())
    done = snapshot_of(make_spec())
    frames = {name: replace(frame, level=8, pooling=pooling) for name, frame in done.picture.frames.items()}
    line.present(replace(done, picture=replace(done.picture, frames=frames)))
    assert line._left.text().split(" · ")[2] == words


@pytest.mark.parametrize("width", [260, 400, 600, 900, 1400])
def test_parts_that_have_no_room_go_whole_and_are_in_the_tooltip(shown, width):
    line = shown(StatusLine())
    line.present(probed(snapshot_of(make_spec(num_heads=6)), 1, 0, tuple(n / 7 for n in range(6))))
    line.resize(width, 34)
    QApplication.processEvents()
    for parts in line._left, line._right:
        held = parts.shown().split(" · ")
        assert parts.toolTip().removeprefix("<span>").removesuffix("</span>") == parts.text()
        assert text_width(parts.font(), parts.shown()) <= parts.width() + 1
        if len(held) > 1:
            assert held[: len(held) - (held[-1] == "…")] == parts.text().split(" · ")[: len(held) - (held[-1] == "…")]
    assert (line._left.shown() == line._left.text()) == (width == 1400)
    assert line._left.shown().startswith("exact")


def test_tokens_that_only_count_are_written_as_numbers(shown):
    line = shown(StatusLine())
    line.present(probed(snapshot_of(make_spec(RandomEmbeddings(length=1200), num_heads=1)), 1100, 1001, (0.5,)))
    assert line._right.text() == "query 1,100 · key 1,001 · 0.5"


def test_numbers_that_are_still_being_computed_are_dots(shown):
    line = shown(StatusLine())
    answer = probed(snapshot_of(make_spec()), 1, 0, (0.5, None))
    answer = replace(answer, probe=replace(answer.probe, classes=(CellClass.ORDINARY, None)))
    line.present(answer)
    assert line._right.text().endswith("head 0 0.5 · head 1 …")


# --------------------------------------------------------------------------------------------------- words that differ


def test_no_word_widens_the_window(shown):
    long = snapshot_of(make_spec(Text(text="a" * 400 + " <b>b</b>"), mask="none", num_heads=1), row=0)
    long = probed(long, 0, 0, (0.5,))
    long = replace(long, failure=Failure(1, "Cannot write /" + "x" * 400, ""))
    for view in (StatusLine(), SentenceCard(), Banner(), TokenStrip()):
        shown(view).present(long)
        assert view.minimumSizeHint().width() <= 600, type(view).__name__


@pytest.mark.parametrize("view", [StatusLine, Banner, SentenceCard])
def test_a_token_that_looks_like_markup_stays_text(shown, view):
    widget = shown(view())
    widget.present(replace(snapshot_of(make_spec(Text(text="<b> x")), row=0), failure=FAILED))
    formats = {label.textFormat() for label in widget.findChildren(QLabel) if "<" in label.text()}
    assert formats <= {Qt.TextFormat.PlainText}


def test_tooltips_show_the_token_as_it_is_and_the_whole_origin(shown, monkeypatch):
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda _place, text, *_: told.append(text))
    strip = shown(TokenStrip())
    strip.resize(900, 44)
    strip.present(snapshot_of(make_spec(Text(text="< a")), row=0))
    strip.grab()
    for point in (strip._pills[0][1].center().toPoint(), QPoint(899, 43)):
        QApplication.sendEvent(strip, QHelpEvent(QEvent.Type.ToolTip, point, point))
    assert "&lt;" in told[0]
    assert "untrained: random embeddings and weights" in told[1]


# -------------------------------------------------------------------------------------------------------- token strip


@pytest.mark.parametrize("width", [200, 600, 1200])
def test_thousands_of_tokens_fit_with_their_number(shown, width):
    strip = shown(TokenStrip())
    strip.resize(width, 44)
    strip.present(snapshot_of(make_spec(RandomEmbeddings(length=1024), num_heads=1), row=1000))
    strip.grab()
    places = [place for place, _ in strip._pills]
    assert 1000 in places
    assert len(places) <= 24
    assert strip._pills[0][1].left() >= 0
    if width > 200:
        words = text_width(sized(13), strip._left_out(1024 - len(places)))
        assert strip._pills[-1][1].right() + 12 + words + 14 + strip._chip_width() <= width


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("width", [330, 560, 860, 1100])
def test_from_afar_the_selected_word_is_there_and_those_left_out_are_counted(shown, width, row, monkeypatch):
    from attnviz.views import token_strip

    texts = []
    draw = token_strip.draw_text

    def recorded(painter, rect, flags, text):
        texts.append((text, text_width(painter.font(), text), painter.font().pixelSize()))
        draw(painter, rect, flags, text)

    monkeypatch.setattr(token_strip, "draw_text", recorded)
    strip = shown(TokenStrip())
    strip.scale = 28 / 18
    strip.resize(width, 70)
    strip.present(snapshot_of(make_spec(Text(text=" ".join(SIX_WORDS))), row=row))
    strip.grab()
    places = [place for place, _ in strip._pills]
    assert row in places
    small = [(text, px) for text, _, px in texts if text not in SIX_WORDS]
    if len(places) < 6:
        assert small == [(f"… {6 - len(places)} more", 20)]  # and the chip has gone
        assert strip._pills[-1][1].right() + 12 + max(wide for text, wide, _ in texts if "…" in text) <= width
    else:
        assert [px for _, px in small] == ([20] if width == 1100 else [])  # the chip grew, or went


def test_a_pill_says_the_word_in_english_too(shown, monkeypatch):
    shown_tips = []
    monkeypatch.setattr(QToolTip, "showText", lambda *args: shown_tips.append(args[1]))
    strip = shown(TokenStrip())
    strip.resize(600, 44)
    for spec in (CAT, make_spec(Text(text="one step"))):
        strip.present(snapshot_of(spec, row=0))
        strip.grab()
        point = strip._pills[0][1].center().toPoint()
        QApplication.sendEvent(strip, QHelpEvent(QEvent.Type.ToolTip, point, strip.mapToGlobal(point)))
    assert shown_tips == ["<span>猫 · cat</span>", "<span>one</span>"]


def test_presenting_the_strip_selects_nothing_and_keys_without_a_query_are_no_rows(qtbot, shown):
    strip = shown(TokenStrip())
    rows = []
    strip.row_selected.connect(rows.append)
    strip.resize(900, 44)
    strip.present(snapshot_of(make_spec(TypedScores(scores=((1.0, 2.0, 3.0),))), row=0))
    strip.grab()
    for place in (0, 2):
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip._pills[place][1].center().toPoint())
    assert rows == [0]


# ------------------------------------------------------------------------------------------------------------- banner


def test_the_banner_shows_a_failure_once_and_its_details_on_request(qtbot, shown):
    banner = shown(Banner())
    snapshot = snapshot_of(make_spec())
    banner.present(snapshot)
    banner.present(replace(snapshot, failure=FAILED))
    assert banner.isVisible()
    assert banner._words.text() == "cuda:1 ran out of memory at <block 3>. Give it less."
    assert not banner._details.isVisible()
    qtbot.mouseClick(banner._more, Qt.MouseButton.LeftButton)
    assert banner._details.isVisible()
    banner.present(replace(snapshot, failure=FAILED, show_numbers=False))
    assert banner._details.isVisible()  # what a person opened stays open
    close = next(b for b in banner.findChildren(QPushButton) if b.text() == "Close")
    with qtbot.waitSignal(banner.dismissed):
        qtbot.mouseClick(close, Qt.MouseButton.LeftButton)
    banner.present(snapshot)
    assert not banner.isVisible()


# ------------------------------------------------------------------------------------------------------ sentence card


def test_the_link_to_ones_own_sentence_comes_after_the_mask(qtbot, shown):
    card = shown(SentenceCard())
    card.resize(500, 154)
    card.present(snapshot_of(CAT, row=1))
    height = card.heightForWidth(500)
    assert not card._own.isVisible()
    unmasked = card.text()
    masked = snapshot_of(edited(CAT, mask="neg-inf"), row=1)
    card.present(replace(masked, stale=True))
    assert card.text() == unmasked  # the words follow the picture, not the request
    card.present(replace(masked, last=snapshot_of(CAT).picture))
    assert max(card.heightForWidth(500), height) <= card.minimumHeight()  # what comes after M lifts nothing
    with qtbot.waitSignal(card.own_text_asked):
        qtbot.mouseClick(card._own, Qt.MouseButton.LeftButton)


def test_a_sentence_stays_until_the_next_row_can_be_told(shown):
    card = shown(SentenceCard())
    spec = make_spec(RandomEmbeddings(length=64), num_heads=1)
    view, engine = View(), Engine()
    picture = rendering.collect(engine, spec, view, Viewport(pixels=(16, 16)))

    def known(row):
        return engine.row_story(RowQuestion(picture.generation, spec, row, 0, None))

    base = Snapshot(spec=spec, view=view, picture=picture, selected=Cell(40, 0), story=known(40))
    card.present(base)
    assert "sees 41 of 64 tokens" in card.text()
    card.present(replace(base, selected=Cell(41, 0)))
    assert "sees 41 of 64 tokens" in card.text()  # 41's numbers are on their way
    card.present(replace(base, selected=Cell(41, 0), story=known(41)))
    assert "sees 42 of 64 tokens" in card.text()
    card.present(replace(base, selected=Cell(3, 0), picture=replace(picture, view=View(stage="dropped_weights"))))
    assert "sees 42" not in card.text()  # another map's


def test_the_card_and_the_tokens_say_that_they_are_of_the_last_good_picture(shown):
    card, strip = shown(SentenceCard()), shown(TokenStrip())
    good = snapshot_of(CAT, row=1)
    for view in card, strip:
        view.present(good)
    asked = replace(good, spec=make_spec(), stale=True, running=True)
    for view in card, strip:
        view.present(asked)
    assert card.text().startswith("“Eats”")
    assert not strip._last_good
    for view in card, strip:
        view.present(replace(asked, running=False, failure=FAILED))
    assert card.text().startswith("This is still the last good picture")
    assert strip._last_good
    assert strip._short_origin() == "the last good picture"


# ------------------------------------------------------------------------------------------------------ pipeline strip


@pytest.mark.parametrize(("spec", "stage", "words", "formula"), [
    (make_spec(), "queries", "ask", "Q = X·Wq"), (make_spec(RandomQK(length=4)), "queries", "ask", "Q"),
    (make_spec(RandomQK(length=4)), "keys", "offer", "K"), (make_spec(), "masked_scores", "hide the future", "−∞"),
    (make_spec(mask_shape=Full()), "masked_scores", "hide", "−∞"),
    (make_spec(fill=-1e9), "masked_scores", "hide the future", "−10⁹"),
    (make_spec(mask="add"), "masked_scores", "add the mask", "S + M (−∞)"),
    (make_spec(top_k=2), "masked_scores", "hide the future", "−∞, top 2"),
    (make_spec(mask="none", top_k=2), "masked_scores", "keep the largest", "top 2"),
    (make_spec(mask="multiply"), "weights", "hide the future", "× triangle"),
    (make_spec(mask="multiply", mask_shape=Full()), "weights", "hide", "× mask"),
    (make_spec(mask="three-step"), "weights", "share out again", "÷ Σ"),
    (make_spec(), "weights", "share out", "softmax"),
    (make_spec(projection="none"), "scores", "compare", "X·Xᵀ"),
    (make_spec(scale=0.5), "scaled_scores", "scale", "× 0.5"),
    (CAT, "scaled_scores", "scaled scores", "by hand"), (make_spec(), "output", "hand on", "as joined"),
    (make_spec(out_proj=True), "output", "project", "·Wo"),
])  # fmt: skip
def test_what_a_box_does_is_what_the_spec_computes(spec, stage, words, formula):
    assert stage in stages_of(spec)
    assert operation(spec, stage) == (words, formula)


@pytest.mark.parametrize("width", [700, 988, 1244, 2400])
@pytest.mark.parametrize("spec", [make_spec(), make_spec(mask="three-step", dropout=0.5), CAT], ids=["−∞", "3", "cat"])
def test_every_box_has_its_name_and_stays_where_it_is_whichever_is_shown(shown, spec, width):
    strip = shown(PipelineStrip())
    strip.resize(width, 58)
    places = set()
    for stage in stages_of(spec):
        strip.present(snapshot_of(spec, stage=stage))
        strip.grab()
        places.add(tuple(box.rect.getRect() for box in strip._boxes))
        assert all(box.lines for box in strip._boxes)
        for box in strip._boxes:
            assert max(text_width(sized(strip._level.words), line) for line in box.lines) <= box.rect.width()
    assert len(places) == 1
    assert strip._boxes[-1].rect.right() <= width


def test_a_boxs_tip_names_its_shape_and_its_key(shown):
    strip = shown(PipelineStrip())
    strip.present(snapshot_of(make_spec(RandomEmbeddings(length=6), num_heads=2, d_out=4)))
    assert strip._tip("queries") == "ask: Q = X·Wq → queries · shape (2, 6, 2) · key 2"
    assert strip._tip("scaled_scores").startswith("scale: ÷ √d_head → scaled_scores · ")


@pytest.mark.parametrize("dark", [False, True])
def test_masked_pixels_of_thumbnails_are_the_themes_paper(shown, qapp, dark):
    palette = qapp.palette()
    try:
        theme.apply_theme(qapp, dark)
        strip = shown(PipelineStrip())
        strip.resize(900, 58)
        spec = edited(CAT, mask="neg-inf")
        picture = rendering.collect(Engine(), spec, View(), Viewport(thumbnail=30))
        strip.present(Snapshot(spec=spec, view=View(), picture=picture))
        image = strip.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        box = next(box for box in strip._boxes if box.stage == "masked_scores")
        place = strip._thumbnail_rect(box)
        corner = image.pixelColor(round(place.right() - 4), round(place.top() + 4))
    finally:
        qapp.setPalette(palette)
        qapp.setStyleSheet("")
    assert corner == (cells.DARK if dark else cells.LIGHT).masked


@pytest.mark.parametrize("dark", [False, True])
def test_a_check_box_is_seen_ticked_or_not(shown, qapp, dark):
    palette, c = qapp.palette(), theme.colours(dark)
    try:
        theme.apply_theme(qapp, dark)
        looks = {}
        for ticked in (False, True):
            box = shown(QCheckBox("top-k"))
            box.setChecked(ticked)
            image = box.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
            looks[ticked] = {QColor(image.pixel(x, y)).name() for x in range(16) for y in range(image.height())}
    finally:
        qapp.setPalette(palette)
        qapp.setStyleSheet("")
    assert c.muted in looks[False]
    assert colour.contrast(int(c.muted[1:], 16), int(c.ground[1:], 16)) >= 3
    assert {c.accent, c.on_accent} <= looks[True]  # its tick is read from a file


def test_the_strip_shows_the_state_before_while_it_is_held(qtbot, shown):
    strip = shown(PipelineStrip())
    strip.resize(1244, 58)
    emitted = []
    strip.view_edited.connect(emitted.append)
    now = replace(snapshot_of(make_spec(mask="three-step")), last=snapshot_of(make_spec(mask="none")).picture)
    for held, names in (True, stages_of(make_spec(mask="none"))), (False, stages_of(make_spec(mask="three-step"))):
        strip.present(replace(now, show_before=held))
        strip.grab()
        assert tuple(box.stage for box in strip._boxes) == names
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip._boxes[0].rect.center().toPoint())
    assert emitted == [View(stage="inputs")]


# ------------------------------------------------------------------------------------------------ module, keys, palette


@pytest.mark.parametrize("width", [300, 360, 420, 540])
def test_the_module_table_never_scrolls_sideways(shown, width):
    page = shown(ModulePage())
    page.present(snapshot_of(make_spec(num_heads=12)))
    page.resize(width, 500)
    QApplication.processEvents()
    columns = [page.table.columnWidth(n) for n in range(5) if not page.table.isColumnHidden(n)]
    assert sum(columns) <= page.table.viewport().width() + 1
    assert page.table.horizontalScrollBar().maximum() == 0
    assert not page.table.isColumnHidden(0)
    assert not page.table.isColumnHidden(2)
    assert "buffers bool on cpu" in page._note.text()
    assert "True in it hides" in page._note.text()


def test_without_projections_there_are_no_parameters(shown):
    page = shown(ModulePage())
    page.present(snapshot_of(make_spec(projection="none")))
    assert page._note.text().startswith("No projections: no parameters")
    page.present(snapshot_of(CAT))
    assert "no module" in page._note.text()


def test_nothing_found_is_said_and_does_nothing(qtbot, shown):
    window = shown(QWidget())
    palette = Palette(window)
    palette.set_actions([QAction("Zoom in", window)])
    palette.popup()
    qtbot.keyClicks(palette.search, "xyz")
    assert [palette.found.item(n).text() for n in range(palette.found.count())] == [
        "nothing found: the controls are under Set up"
    ]
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(palette.search, key)
    assert palette.isVisible()
    palette.search.clear()
    assert palette.found.item(0).text() == "Zoom in"
    palette.close()


def test_the_palette_knows_groups_keys_and_keywords_after_names(qtbot, shown):
    window = shown(QWidget())
    actions = []
    for name, text, keys in (
        ("mask_toggle", "Mask on or off", "M"), ("zoom_in", "Zoom in", "+"), ("export", "Export picture…", "Ctrl+E"),
        ("quit", "Quit", "Ctrl+Q"), ("dark", "File of the night", ""),
    ):  # fmt: skip
        action = QAction(text, window)
        action.setObjectName(name)
        action.setShortcut(QKeySequence(keys))
        actions.append(action)
    actions[1].setProperty("keywords", "larger magnify")
    palette = Palette(window)
    palette.set_actions(actions)

    def found(words):
        palette._fill(words)
        return [palette.found.item(n).text().split("    ")[0] for n in range(palette.found.count())]

    assert found("file") == ["File of the night", "Export picture…", "Quit"]  # a name before a group
    assert found("attention") == ["Mask on or off"]
    assert found("ctrl+e") == ["Export picture…"]
    assert found("magnify") == ["Zoom in"]


def test_both_columns_of_the_keys_page_are_used_evenly(shown):
    page = KeysPage()
    page.set_rows(key_table())
    shown(page)
    QApplication.processEvents()
    inside = page._area.widget()
    lefts = [label for label in inside.findChildren(QLabel) if label.property("role") == "heading"]
    ends = {}
    for label in inside.findChildren(QLabel):
        side = label.mapTo(inside, QPoint(0, 0)).x() > inside.width() / 2
        ends[side] = max(ends.get(side, 0), label.mapTo(inside, QPoint(0, label.height())).y())
    assert len(lefts) == len({group for group, _, _ in key_table()})
    assert abs(ends[True] - ends[False]) <= 0.25 * max(ends.values())


def test_the_module_table_is_copied_and_its_buffers_follow_the_theme(qtbot, shown, qapp):
    page = shown(ModulePage())
    page.present(snapshot_of(make_spec(implementation="split")))
    page.activateWindow()
    page.table.setFocus()
    qtbot.waitUntil(page.table.hasFocus)
    qtbot.keyClick(page.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    QApplication.clipboard().clear()
    assert len(lines) == page.table.rowCount()
    assert any("\tbuffer\t" in line for line in lines)
    buffer = next(row for row in range(page.table.rowCount()) if page.table.item(row, 1).text() == "buffer")
    sheet, palette, font, style = qapp.styleSheet(), qapp.palette(), qapp.font(), qapp.style().objectName()
    try:
        for dark in (True, False):
            theme.apply_theme(qapp, dark)
            qapp.processEvents()
            tint = page.table.item(buffer, 0).background().color().name()
            assert tint == theme.colours(dark).accent_soft
    finally:
        qapp.setStyle(style)
        qapp.setStyleSheet(sheet)
        qapp.setFont(font)
        qapp.setPalette(palette)


def test_every_row_of_the_keys_page_is_shown_and_esc_closes_it(qtbot, shown):
    page = KeysPage()
    page.set_rows([("File", "Export", "Ctrl+E"), ("Map", "Mask", "M"), ("Map", "Next head", "H")])
    shown(page)
    texts = {label.text() for label in page.findChildren(QLabel)}
    assert {"FILE", "MAP", "Export", "Ctrl+E", "Mask", "M", "Next head", "H"} <= texts
    qtbot.keyClick(page, Qt.Key.Key_Escape)
    assert not page.isVisible()


def test_the_palette_moves_through_what_it_found_and_esc_closes_it(qtbot, shown):
    window = shown(QWidget())
    done = []
    actions = []
    for name in ("Zoom in", "Zoom out"):
        action = QAction(name, window)
        action.triggered.connect(lambda _checked=False, name=name: done.append(name))
        actions.append(action)
    actions[0].setShortcut(QKeySequence("+"))
    palette = Palette(window)
    palette.set_actions(actions)
    palette.popup()
    assert "+" in palette.found.item(0).text()
    qtbot.keyClick(palette.search, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert done == []
    palette.popup()
    qtbot.keyClick(palette.search, Qt.Key.Key_Down)
    qtbot.keyClick(palette.search, Qt.Key.Key_Return)
    assert done == ["Zoom out"]
