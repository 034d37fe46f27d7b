"""The panel of controls and the switch: what is typed stays, what is refused is said where it can be seen."""

from dataclasses import replace

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from attnviz.figure.fonts import load_fonts
from attnviz.frames import DeviceInfo
from attnviz.session import Picture, Problem, Snapshot
from attnviz.spec import (
    CHOICES,
    AttentionSpec,
    Blocks,
    Drawn,
    Full,
    Lesson,
    MaskFile,
    RandomEmbeddings,
    RandomQK,
    SlidingWindow,
    SpecError,
    Text,
    TypedWeights,
    View,
    edited,
    make_spec,
)
from attnviz.views import theme
from attnviz.views.controls import Controls
from attnviz.views.mask_switch import MaskSwitch

CAT = make_spec(Lesson(name="cat-eats-fish"))
WEIGHTS = make_spec(TypedWeights(weights=((0.4, 0.3, 0.2, 0.1),)))


def snapshot(spec, **fields):
    return Snapshot(spec=spec, view=fields.pop("view", View()), **fields)


@pytest.fixture
def panel(qtbot):
    """The controls on the screen with the focus, and what they emit."""
    controls = Controls()
    qtbot.addWidget(controls)
    emitted = []
    controls.spec_edited.connect(emitted.append)
    controls.view_edited.connect(emitted.append)
    controls.show()
    controls.activateWindow()
    qtbot.waitUntil(controls.isActiveWindow)
    return controls, emitted


def typed(qtbot, editor, text):
    """``text`` typed into an editor in place of what it shows, without leaving it."""
    line = editor if isinstance(editor, QLineEdit) else editor.lineEdit()
    editor.setFocus()
    line.selectAll()
    qtbot.keyClicks(line, text)


def shown_labels(controls):
    return [label.text() for label in controls.findChildren(QLabel) if label.isVisible()]


# -------------------------------------------------------------------------------------------------- typing, refusals


@pytest.mark.parametrize("field", ["num_heads", "d_out", "seed", "d_model", "batch", "scale"])
def test_a_snapshot_does_not_overwrite_what_is_being_typed(qtbot, panel, field):
    controls, emitted = panel
    spec = make_spec(RandomEmbeddings(length=4))
    controls._more.setChecked(True)
    controls.present(snapshot(spec))
    editor = controls._editors[field]
    typed(qtbot, editor, "12")
    for other in (edited(spec, dropout=0.25), spec):
        controls.present(snapshot(other, running=True))
    line = editor if isinstance(editor, QLineEdit) else editor.lineEdit()
    assert line.text() == "12"
    assert emitted == []
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert emitted == [edited(spec, **{field: 12})]


def test_a_field_that_only_has_the_focus_is_set(qtbot, panel):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec()))
    for field, value, text in [("num_heads", 3, "3"), ("scale", 0.5, "0.5"), ("seed", 9, "9")]:
        editor = controls._editors[field]
        editor.setFocus()
        controls.present(snapshot(edited(make_spec(), **{field: value})))
        assert (editor if isinstance(editor, QLineEdit) else editor.lineEdit()).text() == text
        controls.present(snapshot(make_spec()))
    assert emitted == []


def test_what_was_refused_stays_with_its_words_while_frames_come(panel):
    controls, emitted = panel
    controls.present(snapshot(make_spec()))
    controls._editors["d_out"].setValue(5)
    for running in (True, False):
        controls.present(snapshot(make_spec(), running=running))
        assert controls._editors["d_out"].value() == 5
        assert "d_out is 5" in controls._problems["d_out"].text()
        assert controls._problems["d_out"].isVisible()
    assert emitted == []
    controls.present(snapshot(edited(make_spec(), mask="none")))
    assert controls._editors["d_out"].value() == 4
    assert not controls._problems["d_out"].isVisible()


def test_a_slider_in_the_hand_is_not_pulled_back(panel):
    controls, _ = panel
    controls.present(snapshot(make_spec()))
    slider = controls._editors["dropout"]
    slider.slider.setSliderDown(True)
    slider.set_value(0.6)
    controls.present(snapshot(make_spec(dropout=0.4)))
    assert slider.value() == pytest.approx(0.6)
    slider.slider.setSliderDown(False)
    controls.present(snapshot(make_spec(dropout=0.2)))
    assert slider.value() == pytest.approx(0.2)


@pytest.mark.parametrize("field", ["dropout_seed", "scale", "batch", "dropout_generator"])
def test_a_problem_of_a_control_under_more_opens_more(panel, field):
    controls, _ = panel
    controls.present(snapshot(make_spec()))
    assert not controls._editors[field].isVisible()
    controls.present(snapshot(make_spec(), problem=Problem(field, f"{field} is odd")))
    assert controls._problems[field].isVisible()
    assert controls._problems[field].text() == f"{field} is odd"


def test_a_problem_goes_when_the_snapshot_has_none(panel):
    controls, _ = panel
    controls.present(snapshot(make_spec(), problem=Problem("dtype", "dtype is odd")))
    assert controls._problems["dtype"].isVisible()
    controls.present(snapshot(make_spec()))
    assert not controls._problems["dtype"].isVisible()


@pytest.mark.parametrize(("field", "text", "said"), [
    ("scale", "half", "scale is “half”"), ("scale", "nan", "finite"),
    ("seed", "-1", "seed is -1"), ("seed", "x", "seed is “x”"), ("seed", "9" * 30, "seed is 999"),
])  # fmt: skip
def test_words_that_are_no_number_are_refused_in_words(qtbot, panel, field, text, said):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec()))
    typed(qtbot, controls._editors[field], text)
    qtbot.keyClick(controls._editors[field], Qt.Key.Key_Return)
    assert said in controls._problems[field].text()
    assert controls._editors[field].text() == text
    assert emitted == []


@pytest.mark.parametrize(("field", "text", "value"), [
    ("mask_shape", "window:3", SlidingWindow(width=3)), ("mask_shape", "full", Full()),
    ("mask_shape", "blocks:2,1", Blocks(lengths=(2, 1))), ("fill", "-1e9", -1e9), ("fill", "0", 0.0),
    ("soft_cap", "50", 50.0), ("num_kv_heads", "1", 1),
])  # fmt: skip
def test_shapes_fills_caps_and_shared_heads_are_typed(qtbot, panel, field, text, value):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec()))
    editor = controls._editors[field]
    typed(qtbot, editor, text)
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert emitted == [edited(make_spec(), **{field: value})]
    controls.present(snapshot(emitted[0]))
    controls.present(snapshot(make_spec()))
    shown = {"mask_shape": "causal", "fill": "−∞", "soft_cap": "none", "num_kv_heads": "2"}[field]
    assert (editor if isinstance(editor, QLineEdit) else editor.lineEdit()).text() == shown


@pytest.mark.parametrize(("field", "text", "said"), [
    ("mask_shape", "window", "window:W"), ("mask_shape", "drawn:x", "draw it on the map"),
    ("mask_shape", "masks/mine.npy", "or draw it on the map"),
    ("mask_shape", "window:0", "mask_shape is 0"), ("fill", "much", "fill is “much”"), ("fill", "inf", "fill is inf"),
    ("soft_cap", "-1", "above 0"), ("soft_cap", "x", "soft_cap is “x”"), ("num_kv_heads", "3", "num_kv_heads is 3"),
])  # fmt: skip
def test_what_cannot_be_a_shape_a_fill_or_a_cap_is_refused_beside_it(qtbot, panel, field, text, said):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec(num_heads=4)))
    typed(qtbot, controls._editors[field], text)
    qtbot.keyClick(controls._editors[field], Qt.Key.Key_Return)
    assert said in controls._problems[field].text()
    assert controls._problems[field].isVisible()
    assert emitted == []


def test_a_cap_is_taken_away_by_an_empty_line(qtbot, panel):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec(soft_cap=30.0)))
    assert controls._editors["soft_cap"].text() == "30"
    typed(qtbot, controls._editors["soft_cap"], " ")
    qtbot.keyClick(controls._editors["soft_cap"], Qt.Key.Key_Return)
    assert emitted == [make_spec()]


def test_a_mask_of_a_file_is_shown_by_its_path_and_left_alone(qtbot, panel):
    controls, emitted = panel
    shape = MaskFile(path="/data/mask.npy", sha256="0" * 64)
    controls.present(snapshot(make_spec(mask_shape=shape)))
    editor = controls._editors["mask_shape"]
    assert editor.text() == "/data/mask.npy"
    editor.setFocus()
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert emitted == []


def test_steps_of_shared_heads_are_the_numbers_that_divide(panel):
    controls, emitted = panel
    controls.present(snapshot(make_spec(num_heads=12)))
    spin = controls._editors["num_kv_heads"]
    for wanted in (6, 4, 3, 2, 1):
        spin.stepDown()
        assert spin.value() == wanted
        controls.present(snapshot(emitted[-1]))
    spin.stepDown()
    assert spin.value() == 1
    spin.stepUp()
    assert [spec.num_kv_heads for spec in emitted] == [6, 4, 3, 2, 1, 2]


@pytest.mark.parametrize("mask", ["none", "three-step", "multiply"])
def test_a_fill_without_its_mask_is_grey_with_the_reason(panel, mask):
    controls, _ = panel
    controls.present(snapshot(make_spec()))
    assert controls._editors["fill"].isEnabled()
    controls.present(snapshot(make_spec(mask=mask)))
    assert not controls._editors["fill"].isEnabled()
    assert "only the −∞ mask" in controls._editors["fill"].toolTip()
    controls.present(snapshot(WEIGHTS))
    assert "dropout alone applies" in controls._editors["mask_shape"].toolTip()
    assert not controls._editors["mask_shape"].isEnabled()


def test_a_fill_is_taken_from_the_list_and_what_the_dtype_makes_of_it_is_said(qtbot, panel):
    controls, emitted = panel
    controls.present(snapshot(make_spec(dtype="bfloat16")))
    fill = controls._editors["fill"]
    assert [fill.itemText(n) for n in range(fill.count())] == ["−∞", "−10⁹", "−10⁶", "−10⁴", "0"]
    assert not any("−9,984" in words for words in shown_labels(controls))
    fill.setFocus()
    for _ in range(3):
        qtbot.keyClick(fill, Qt.Key.Key_Down)
    assert emitted[-1].fill == -1e4
    controls.present(snapshot(emitted[-1]))
    assert fill.currentText() == "−10⁴"
    assert any("bfloat16 makes −10⁴ into −9,984" in words for words in shown_labels(controls))
    controls.present(snapshot(make_spec(fill=-2.5e7)))
    assert fill.currentText() == "−2.5e7"


@pytest.mark.parametrize("mode", ["none", "three-step", "neg-inf", "multiply", "add"])
def test_every_mask_mode_has_its_button_and_its_words(qtbot, panel, mode):
    controls, emitted = panel
    start = make_spec(mask="none" if mode != "none" else "neg-inf")
    controls.present(snapshot(start))
    modes = controls._editors["mask"]
    assert set(modes.buttons) == set(CHOICES["mask"])
    qtbot.mouseClick(modes.buttons[mode], Qt.MouseButton.LeftButton)
    assert emitted == [edited(start, mask=mode)]
    controls.present(snapshot(emitted[0]))
    assert [name for name, button in modes.buttons.items() if button.isChecked()] == [mode]
    told = " ".join(shown_labels(controls))
    assert ("a mistake" in told) == (mode == "multiply")
    assert ("True keeps in SDPA" in told) == (mode != "none")


def test_top_k_and_the_masks_behind_the_softmax_shut_each_other_out(qtbot, panel):
    controls, emitted = panel
    controls.present(snapshot(make_spec()))
    top_k, modes = controls._editors["top_k"], controls._editors["mask"]
    top_k.setValue(2)
    assert emitted == [make_spec(top_k=2)]
    controls.present(snapshot(emitted[0]))
    greyed = {name for name, button in modes.buttons.items() if not button.isEnabled()}
    assert greyed == {"three-step", "multiply"}
    assert "top-k" in modes.buttons["multiply"].toolTip()
    qtbot.mouseClick(modes.buttons["multiply"], Qt.MouseButton.LeftButton)
    assert len(emitted) == 1
    top_k.setValue(0)
    assert emitted[-1] == make_spec()
    controls.present(snapshot(make_spec(mask="three-step")))
    assert all(button.isEnabled() for button in modes.buttons.values())
    assert not top_k.isEnabled()
    assert "before the softmax" in top_k.toolTip()


def test_what_is_drawn_is_counted_left_alone_and_gone_on_with_by_a_button(qtbot, panel):
    controls, emitted = panel
    spec = make_spec(mask_shape=Drawn(runs=((0, 0, 0), (1, 0, 1), (3, 2, 3))))
    controls.present(snapshot(spec))
    line = controls._editors["mask_shape"]
    assert line.text() == "drawn (3 runs)"
    line.setFocus()
    qtbot.keyClick(line, Qt.Key.Key_Return)
    assert emitted == []
    with qtbot.waitSignal(controls.draw_mask_asked):
        qtbot.mouseClick(controls.mask_controls._draw, Qt.MouseButton.LeftButton)
    controls.present(snapshot(WEIGHTS))
    assert not controls.mask_controls._draw.isEnabled()


def test_a_mask_of_a_file_says_what_true_means(panel):
    controls, _ = panel
    controls.present(snapshot(make_spec(mask_shape=MaskFile(path="/data/mask.npy", sha256="0" * 64))))
    assert any("True in the file = may be seen" in words for words in shown_labels(controls))


def test_a_projection_is_chosen_where_there_is_a_module(qtbot, panel):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec()))
    combo = controls._editors["projection"]
    combo.setFocus()
    for _ in range(2):
        qtbot.keyClick(combo, Qt.Key.Key_Down)
    assert emitted == [edited(make_spec(), projection="rand"), edited(make_spec(), projection="none")]
    controls.present(snapshot(CAT))
    assert not combo.isEnabled()
    assert "no projections" in combo.toolTip()


def test_the_state_before_stands_greyed_while_it_is_held_and_nothing_is_emitted(qtbot, panel):
    controls, emitted = panel
    switch = MaskSwitch()
    qtbot.addWidget(switch)
    now, then = make_spec(mask="multiply", num_heads=1), make_spec(mask="none", num_heads=1, dropout=0.3)
    last = Picture(spec=then, view=View(), generation=1)
    held = snapshot(now, picture=Picture(spec=now, view=View(), generation=2), last=last, show_before=True)
    for shown, spec, grey in (held, then, True), (replace(held, show_before=False), now, False):
        for view in controls, switch:
            view.present(shown)
        buttons = controls._editors["mask"].buttons
        assert [name for name, button in buttons.items() if button.isChecked()] == [spec.mask]
        assert controls._editors["dropout"].value() == pytest.approx(spec.dropout)
        assert controls.isEnabled() != grey
        assert switch._segments.isEnabled() != grey
        assert switch._segments.buttons["unmasked"].isChecked() == (spec.mask == "none")
    assert emitted == []


def test_every_control_has_a_tooltip(panel):
    controls, _ = panel
    controls.present(snapshot(make_spec(), devices=(DeviceInfo("cpu", "8 threads"),)))
    looks = controls.looks
    more = {"norm": looks.norm, "pooling": looks.pooling, "colours": looks.colours, "memory": looks.budget}
    assert [name for name, editor in {**controls._editors, **more}.items() if not editor.toolTip()] == []


def test_what_a_pixel_is_can_be_chosen(qtbot, panel):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec()))
    assert controls.looks.pooling.currentText() == "brightest"
    controls.looks.pooling.setFocus()
    for _ in range(2):
        qtbot.keyClick(controls.looks.pooling, Qt.Key.Key_Down)
        controls.present(snapshot(make_spec(), view=emitted[-1]))
    assert emitted == [View(pooling="mean"), View(pooling="share")]


# ---------------------------------------------------------------------------------------------------- what is shown


def test_seeds_of_63_bits_are_shown_and_typed_whole(qtbot, panel):
    controls, emitted = panel
    spec = make_spec(seed=(1 << 62) + 1)
    controls._more.setChecked(True)
    controls.present(snapshot(spec))
    assert controls._editors["seed"].text() == str((1 << 62) + 1)
    assert controls._editors["dropout_seed"].text() == str((1 << 62) + 1)
    typed(qtbot, controls._editors["seed"], str((1 << 40) + 7))
    qtbot.keyClick(controls._editors["seed"], Qt.Key.Key_Return)
    assert emitted == [edited(spec, seed=(1 << 40) + 7)]


def test_going_back_before_the_edit_was_taken_is_an_edit_too(panel):
    controls, emitted = panel
    controls.present(snapshot(make_spec()))
    for heads in (3, 2):  # the first still waits behind a throttle when the second comes
        controls._editors["num_heads"].setValue(heads)
    assert emitted == [edited(make_spec(), num_heads=3), make_spec()]


def test_leaving_a_line_that_was_not_changed_is_no_edit(panel):
    controls, emitted = panel
    controls._more.setChecked(True)
    controls.present(snapshot(make_spec(scale=0.3)))
    for field in ("scale", "seed", "dropout_seed", "num_heads", "d_out"):
        controls._editors[field].setFocus()
    controls._book_d_out.setFocus()
    controls._editors["dtype"].setFocus()
    assert emitted == []


def test_reroll_raises_the_dropout_seed_by_one_and_is_off_where_nothing_drops(qtbot, panel):
    controls, emitted = panel
    controls.present(snapshot(make_spec()))
    assert not controls._reroll.isEnabled()
    spec = make_spec(dropout=0.5, dropout_seed=7)
    controls.present(snapshot(spec))
    qtbot.mouseClick(controls._reroll, Qt.MouseButton.LeftButton)
    assert emitted == [edited(spec, dropout_seed=8)]


def test_the_line_under_dropout_says_what_happens(panel):
    controls, _ = panel
    for spec, words in [
        (make_spec(), "p = 0: every weight stays"),
        (make_spec(dropout=0.5, training=False), "off in inference: every weight stays"),
        (make_spec(dropout=0.5), "1/(1 − p) = 2.00"),
    ]:
        controls.present(snapshot(spec))
        assert any(words in text for text in shown_labels(controls))


@pytest.mark.parametrize(("spec", "words"), [
    (CAT, {"no projections"}), (make_spec(RandomQK(length=4)), {"no projections", "drawn directly"}),
    (WEIGHTS, {"no projections", "dropout alone applies"}), (make_spec(), set()),
])  # fmt: skip
def test_why_controls_are_grey_stands_in_sight(panel, spec, words):
    controls, _ = panel
    for shown in (make_spec(), WEIGHTS, spec):
        controls.present(snapshot(shown))
    told = " ".join(shown_labels(controls))
    assert {said for said in ("no projections", "dropout alone applies", "drawn directly") if said in told} == words


def test_the_tooltip_comes_back_when_the_source_no_longer_fixes_a_field(panel):
    controls, _ = panel
    controls.present(snapshot(make_spec()))
    own = {field: editor.toolTip() for field, editor in controls._editors.items()}
    controls.present(snapshot(WEIGHTS))
    assert "dropout alone applies" in controls._editors["mask"].toolTip()
    controls.present(snapshot(make_spec()))
    assert {field: editor.toolTip() for field, editor in controls._editors.items()} == own


def test_devices_have_name_title_and_memory_where_it_is_known(qtbot, panel):
    controls, emitted = panel
    devices = (DeviceInfo("cpu", "8 threads"), DeviceInfo("cuda:0", "Some Card", 80_000_000_000))
    controls.present(snapshot(make_spec(), devices=devices))
    device = controls._editors["device"]
    tips = [device.itemData(n, Qt.ItemDataRole.ToolTipRole) for n in range(device.count())]
    assert tips == ["cpu — 8 threads", "cuda:0 — Some Card, 80 GB"]
    device.setFocus()
    qtbot.keyClick(device, Qt.Key.Key_Down)
    assert emitted == [make_spec(device="cuda:0")]
    controls.present(snapshot(make_spec(device="cuda:7"), devices=devices))
    assert device.currentData() == "cuda:7"  # a spec from another machine is shown as it is


def test_norm_and_colours_edit_the_view_alone(qtbot, panel):
    controls, emitted = panel
    controls._more.setChecked(True)
    view = View(stage="scores")
    controls.present(snapshot(make_spec(), view=view))
    controls.looks.colours.setFocus()
    qtbot.keyClick(controls.looks.colours, Qt.Key.Key_Down)
    assert emitted == [msgspec.structs.replace(view, colours="cividis")]


def test_a_refused_sentence_and_the_controls_around_it_have_room(qtbot, application):
    load_fonts()
    theme.apply_theme(application, dark=False)
    for width in range(300, 560, 40):
        area, inside, controls = QScrollArea(), QWidget(), Controls()
        qtbot.addWidget(area)
        area.setWidgetResizable(True)
        column = QVBoxLayout(inside)
        column.addWidget(controls)
        column.addStretch(1)
        area.setWidget(inside)
        controls.present(snapshot(make_spec(Text(text="a"), num_heads=12)))
        area.setFixedSize(width, inside.sizeHint().height() + 60)
        area.show()
        QApplication.processEvents()
        assert not area.verticalScrollBar().isVisible()
        controls._more.setChecked(True)
        controls._fields.say("d_out", str(refusal(num_heads=12, d_out=770)))
        QApplication.processEvents()
        assert area.verticalScrollBar().isVisible()
        label = controls._problems["d_out"]
        assert label.height() >= label.heightForWidth(label.width()) > 0, width
        assert all(editor.height() >= editor.minimumSizeHint().height() for editor in controls._editors.values())
        area.close()


def refusal(**fields):
    with pytest.raises(SpecError) as refused:
        make_spec(Text(text="a"), **fields)
    return refused.value


def test_every_field_of_a_spec_has_a_control_and_every_control_a_name(panel):
    controls, _ = panel
    assert set(controls._editors) == set(AttentionSpec.__struct_fields__) - {"source"}
    assert set(controls._problems) == set(controls._editors)
    names = [editor.accessibleName() for editor in controls._editors.values()]
    assert all(names)
    assert "&" not in "".join(names)
    assert len(set(names)) == len(names)


def test_tab_reaches_every_enabled_control_of_the_card(qtbot, panel):
    controls, _ = panel
    controls.present(snapshot(make_spec(dropout=0.5)))
    reached, widget = set(), controls
    while (widget := widget.nextInFocusChain()) is not controls:
        if widget.isVisible() and widget.isEnabled() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            reached.add(widget)
    inside = {child for widget in reached for child in (widget, widget.parentWidget())}
    for field in ("mask", "dropout", "training", "num_heads", "d_out", "implementation", "device", "dtype"):
        editor = controls._editors[field]
        assert editor in inside or any(editor.isAncestorOf(widget) for widget in reached), field


# ------------------------------------------------------------------------------------------------------------ switch


def test_the_switch_says_why_it_is_fixed(qtbot):
    switch = MaskSwitch()
    qtbot.addWidget(switch)
    emitted = []
    switch.spec_edited.connect(emitted.append)
    switch.present(snapshot(WEIGHTS))
    assert not switch._segments.isEnabled()
    assert "dropout alone applies" in switch._segments.toolTip()
    qtbot.mouseClick(switch._segments.buttons["masked"], Qt.MouseButton.LeftButton)
    assert emitted == []
    switch.present(snapshot(make_spec(mask="none")))
    qtbot.mouseClick(switch._segments.buttons["masked"], Qt.MouseButton.LeftButton)
    assert emitted == [make_spec(mask="neg-inf")]
    assert "M" in switch._segments.toolTip()


def test_the_switch_goes_to_a_mask_that_top_k_does_not_go_with_and_lets_it_go(qtbot):
    switch = MaskSwitch()
    qtbot.addWidget(switch)
    emitted = []
    switch.spec_edited.connect(emitted.append)
    switch.present(snapshot(make_spec(mask="multiply")))
    switch.present(snapshot(make_spec(mask="none", top_k=2)))
    qtbot.mouseClick(switch._segments.buttons["masked"], Qt.MouseButton.LeftButton)
    assert emitted == [make_spec(mask="multiply")]


# ------------------------------------------------------------------------------------------------------------- theme


@pytest.fixture
def application(qapp):
    """The application; its look is put back afterwards."""
    style, font, palette, sheet = qapp.style().objectName(), qapp.font(), qapp.palette(), qapp.styleSheet()
    yield qapp
    qapp.setStyleSheet(sheet)
    qapp.setStyle(style)
    qapp.setFont(font)
    qapp.setPalette(palette)


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_is_told_by_the_palette(application, dark):
    theme.apply_theme(application, dark)
    assert theme.current() is theme.colours(dark)
    assert QApplication.palette().color(QPalette.ColorRole.Accent) == QColor(theme.colours(dark).accent)
    assert application.font().family() == theme.FAMILY


def luminance(colour):
    channels = [QColor(colour).redF(), QColor(colour).greenF(), QColor(colour).blueF()]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """WCAG's ratio, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_can_be_read_on_their_grounds(dark):
    c = theme.colours(dark)
    for words, ground in [(c.ink, c.card), (c.ink, c.ground), (c.ink, c.accent_soft), (c.muted, c.card),
                          (c.muted, c.ground), (c.leak, c.card), (c.accent, c.card)]:  # fmt: skip
        assert contrast(words, ground) >= 4.5
    assert contrast(c.on_accent, c.accent) >= 3
