"""Every action of the window: its words, its keys and where they work. Menus, F1 and Ctrl+K read this one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenuBar, QWidget


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action: ``name`` in the code, menu ``group``, ``text``; ``keys`` belong to the map alone if ``on_map``."""

    name: str
    group: str
    text: str
    keys: tuple[str, ...] = ()
    on_map: bool = True
    checkable: bool = False


def _row(name: str, group: str, text: object, *keys: str, on_map: bool = True, checkable: bool = False) -> ActionRow:
    return ActionRow(name, group, str(text), keys, on_map, checkable)


ROWS: tuple[ActionRow, ...] = (
    _row("open", "File", QT_TRANSLATE_NOOP("Actions", "Open…"), "Ctrl+O", on_map=False),
    _row("save", "File", QT_TRANSLATE_NOOP("Actions", "Save…"), "Ctrl+S", on_map=False),
    _row("export", "File", QT_TRANSLATE_NOOP("Actions", "Export picture…"), "Ctrl+E", on_map=False),
    _row("quit", "File", QT_TRANSLATE_NOOP("Actions", "Quit"), "Ctrl+Q", on_map=False),
    _row("undo", "Edit", QT_TRANSLATE_NOOP("Actions", "Undo"), "Ctrl+Z", on_map=False),
    _row("redo", "Edit", QT_TRANSLATE_NOOP("Actions", "Redo"), "Ctrl+Shift+Z", "Ctrl+Y", on_map=False),
    _row("edit_cell", "Edit", QT_TRANSLATE_NOOP("Actions", "Type the cell's number"), "E"),
    _row("freeze_scores", "Edit", QT_TRANSLATE_NOOP("Actions", "Freeze scores"), "Ctrl+F", on_map=False),
    _row("draw_mask", "Edit", QT_TRANSLATE_NOOP("Actions", "Draw the mask"), "D", checkable=True),
    _row("copy_picture", "Edit", QT_TRANSLATE_NOOP("Actions", "Copy picture"), "Ctrl+C"),
    _row("copy_numbers", "Edit", QT_TRANSLATE_NOOP("Actions", "Copy numbers of the row"), "Ctrl+Shift+C"),
    _row("copy_code", "Edit", QT_TRANSLATE_NOOP("Actions", "Copy as Python"), "Ctrl+Shift+P", on_map=False),
    _row("layout_learn", "View", QT_TRANSLATE_NOOP("Actions", "Learn"), "Ctrl+1", on_map=False, checkable=True),
    _row("layout_test", "View", QT_TRANSLATE_NOOP("Actions", "Test"), "Ctrl+2", on_map=False, checkable=True),
    _row("layout_explore", "View", QT_TRANSLATE_NOOP("Actions", "Explore"), "Ctrl+3", on_map=False, checkable=True),
    _row(
        "panel_side", "View", QT_TRANSLATE_NOOP("Actions", "Pages beside the maps"), "F2", on_map=False, checkable=True
    ),
    _row("panel_sentence", "View", QT_TRANSLATE_NOOP("Actions", "What happened"), "F3", on_map=False, checkable=True),
    _row("presenter", "View", QT_TRANSLATE_NOOP("Actions", "Presenter view"), "F5", on_map=False, checkable=True),
    _row("dark", "View", QT_TRANSLATE_NOOP("Actions", "Dark colours"), "Ctrl+D", on_map=False, checkable=True),
    _row("numbers", "View", QT_TRANSLATE_NOOP("Actions", "Numbers in cells"), "N", checkable=True),
    _row(
        "decimals_auto", "View", QT_TRANSLATE_NOOP("Actions", "Numbers: percent or short"), "Ctrl+Shift+0", on_map=False
    ),
    _row("decimals_2", "View", QT_TRANSLATE_NOOP("Actions", "Numbers: 2 decimals"), "Ctrl+Shift+2", on_map=False),
    _row("decimals_4", "View", QT_TRANSLATE_NOOP("Actions", "Numbers: 4 decimals"), "Ctrl+Shift+4", on_map=False),
    _row("decimals_6", "View", QT_TRANSLATE_NOOP("Actions", "Numbers: 6 decimals"), "Ctrl+Shift+6", on_map=False),
    _row("zoom_in", "View", QT_TRANSLATE_NOOP("Actions", "Zoom in"), "+", "="),
    _row("zoom_out", "View", QT_TRANSLATE_NOOP("Actions", "Zoom out"), "-"),
    _row("zoom_all", "View", QT_TRANSLATE_NOOP("Actions", "Whole map"), "0"),
    _row("mask_toggle", "Attention", QT_TRANSLATE_NOOP("Actions", "Mask on or off"), "M"),
    _row("mask_next", "Attention", QT_TRANSLATE_NOOP("Actions", "Next mask mode"), "Shift+M"),
    _row("training", "Attention", QT_TRANSLATE_NOOP("Actions", "Training or inference"), "T"),
    _row("reroll", "Attention", QT_TRANSLATE_NOOP("Actions", "Re-roll dropout"), "R"),
    _row("stage_back", "Attention", QT_TRANSLATE_NOOP("Actions", "Stage before"), ","),
    _row("stage_on", "Attention", QT_TRANSLATE_NOOP("Actions", "Stage after"), "."),
    _row(
        "redraws", "Attention", QT_TRANSLATE_NOOP("Actions", "Draw dropout again and again"), "Shift+R", checkable=True
    ),
    _row("pin", "Attention", QT_TRANSLATE_NOOP("Actions", "Pin this as A"), "P", checkable=True),
    _row("head_next", "Attention", QT_TRANSLATE_NOOP("Actions", "Next head"), "H"),
    _row("head_previous", "Attention", QT_TRANSLATE_NOOP("Actions", "Previous head"), "Shift+H"),
    _row("head_large", "Attention", QT_TRANSLATE_NOOP("Actions", "One head large"), "Return", "Enter"),
    _row("head_grid", "Attention", QT_TRANSLATE_NOOP("Actions", "All heads"), "Esc"),
    _row("cancel", "Attention", QT_TRANSLATE_NOOP("Actions", "Stop computing"), "Ctrl+.", on_map=False),
    _row("cell_up", "Move", QT_TRANSLATE_NOOP("Actions", "Query above"), "Up"),
    _row("cell_down", "Move", QT_TRANSLATE_NOOP("Actions", "Query below"), "Down"),
    _row("cell_left", "Move", QT_TRANSLATE_NOOP("Actions", "Key to the left"), "Left"),
    _row("cell_right", "Move", QT_TRANSLATE_NOOP("Actions", "Key to the right"), "Right"),
    _row("cell_first", "Move", QT_TRANSLATE_NOOP("Actions", "First token"), "Home"),
    _row("cell_last", "Move", QT_TRANSLATE_NOOP("Actions", "Last token"), "End"),
    _row("go_to", "Move", QT_TRANSLATE_NOOP("Actions", "Go to token…"), "Ctrl+G", on_map=False),
    _row("pan_up", "Move", QT_TRANSLATE_NOOP("Actions", "Pan up"), "Ctrl+Up"),
    _row("pan_down", "Move", QT_TRANSLATE_NOOP("Actions", "Pan down"), "Ctrl+Down"),
    _row("pan_left", "Move", QT_TRANSLATE_NOOP("Actions", "Pan left"), "Ctrl+Left"),
    _row("pan_right", "Move", QT_TRANSLATE_NOOP("Actions", "Pan right"), "Ctrl+Right"),
    _row("lesson_back", "Lesson", QT_TRANSLATE_NOOP("Actions", "Step back"), "PgUp", on_map=False),
    _row("lesson_next", "Lesson", QT_TRANSLATE_NOOP("Actions", "Next step"), "PgDown", on_map=False),
    _row("lesson_cat", "Lesson", QT_TRANSLATE_NOOP("Actions", "Cat eats fish"), "Ctrl+Shift+F", on_map=False),
    _row("lesson_journey", "Lesson", QT_TRANSLATE_NOOP("Actions", "Journey"), "Ctrl+Shift+J", on_map=False),
    _row("lesson_open", "Lesson", QT_TRANSLATE_NOOP("Actions", "Open a lesson…"), "Ctrl+L", on_map=False),
    _row("lesson_end", "Lesson", QT_TRANSLATE_NOOP("Actions", "Leave the lesson"), "Ctrl+Shift+L", on_map=False),
    _row("page_row", "Pages", QT_TRANSLATE_NOOP("Actions", "The row and its story"), "Alt+1", on_map=False),
    _row("page_masks", "Pages", QT_TRANSLATE_NOOP("Actions", "Masks side by side"), "Alt+2", on_map=False),
    _row("page_dropout", "Pages", QT_TRANSLATE_NOOP("Actions", "Dropout, a thousand draws"), "Alt+3", on_map=False),
    _row("page_heads", "Pages", QT_TRANSLATE_NOOP("Actions", "Heads: stacked and split"), "Alt+4", on_map=False),
    _row("page_rounds", "Pages", QT_TRANSLATE_NOOP("Actions", "Rounds of generation"), "Alt+5", on_map=False),
    _row("page_exam", "Pages", QT_TRANSLATE_NOOP("Actions", "The exam"), "Alt+6", on_map=False),
    _row("page_ahead", "Pages", QT_TRANSLATE_NOOP("Actions", "How much looks ahead"), "Alt+7", on_map=False),
    _row("page_compare", "Pages", QT_TRANSLATE_NOOP("Actions", "A and B"), "Alt+8", on_map=False),
    _row("page_leaks", "Pages", QT_TRANSLATE_NOOP("Actions", "Does it leak?"), "F6", on_map=False),
    _row("page_forms", "Pages", QT_TRANSLATE_NOOP("Actions", "Forms of one attention"), on_map=False),
    _row("page_module", "Pages", QT_TRANSLATE_NOOP("Actions", "Module"), "Alt+9", "F4", on_map=False),
    _row("page_controls", "Pages", QT_TRANSLATE_NOOP("Actions", "Set up"), "Alt+0", on_map=False),
    _row("keys", "Help", QT_TRANSLATE_NOOP("Actions", "All keys"), "F1", on_map=False),
    _row("palette", "Help", QT_TRANSLATE_NOOP("Actions", "Find an action…"), "Ctrl+K", on_map=False),
    _row("about", "Help", QT_TRANSLATE_NOOP("Actions", "About attnviz"), on_map=False),
)

STARTS = frozenset({
    "save", "export", "quit", "edit_cell", "copy_picture", "panel_side", "presenter", "numbers", "zoom_in", "training",
    "stage_back", "pin", "head_next", "cancel", "go_to", "pan_up", "lesson_cat", "lesson_end", "page_leaks",
    "page_module", "about",
})  # fmt: skip
"""Actions above which a menu draws a line."""

GROUPS: tuple[tuple[str, object], ...] = (
    ("File", QT_TRANSLATE_NOOP("Actions", "File")),
    ("Edit", QT_TRANSLATE_NOOP("Actions", "Edit")),
    ("View", QT_TRANSLATE_NOOP("Actions", "View")),
    ("Attention", QT_TRANSLATE_NOOP("Actions", "Attention")),
    ("Move", QT_TRANSLATE_NOOP("Actions", "Move")),
    ("Lesson", QT_TRANSLATE_NOOP("Actions", "Lesson")),
    ("Pages", QT_TRANSLATE_NOOP("Actions", "Pages")),
    ("Help", QT_TRANSLATE_NOOP("Actions", "Help")),
)


def build_actions(window: QWidget, map_widget: QWidget) -> Mapping[str, QAction]:
    """One QAction a row, by name; keys that belong to the map work only while it or a child of it has the focus."""
    actions: dict[str, QAction] = {}
    for row in ROWS:
        action = QAction(translated(row.text), window)
        action.setObjectName(row.name)
        action.setShortcuts([QKeySequence(key) for key in row.keys])
        if row.keys:
            action.setToolTip(f"{translated(row.text)} ({shown_keys(row)})")
        action.setCheckable(row.checkable)
        if row.on_map:
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            map_widget.addAction(action)
        else:
            window.addAction(action)
        actions[row.name] = action
    return MappingProxyType(actions)


def fill_menus(bar: QMenuBar, actions: Mapping[str, QAction]) -> None:
    """A menu for each group, with lines where `STARTS` has them."""
    for group, title in GROUPS:
        menu = bar.addMenu(translated(str(title)))
        for row in ROWS:
            if row.group == group:
                if row.name in STARTS:
                    menu.addSeparator()
                menu.addAction(actions[row.name])


def translated(text: str) -> str:
    """``text`` of the table in the interface's language."""
    return QCoreApplication.translate("Actions", text)


def shown_keys(row: ActionRow) -> str:
    """The row's keys as this system writes them."""
    return " or ".join(QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in row.keys)


def key_table() -> list[tuple[str, str, str]]:
    """(group, text, keys) of every action that has keys, for the F1 page; what no action can say comes last."""
    table = [(translated(row.group), translated(row.text), shown_keys(row)) for row in ROWS if row.keys]
    attention = translated("Attention")
    table.append(
        (attention, translated(str(QT_TRANSLATE_NOOP("Actions", "Show the state before, while held"))), "Space")
    )
    table.append((attention, translated(str(QT_TRANSLATE_NOOP("Actions", "Go to a stage"))), "1 … 9"))
    for text, hand in (
        (QT_TRANSLATE_NOOP("Actions", "Zoom about the pointer"), QT_TRANSLATE_NOOP("Actions", "wheel, pinch")),
        (QT_TRANSLATE_NOOP("Actions", "Zoom in on a cell"), QT_TRANSLATE_NOOP("Actions", "double-click")),
        (QT_TRANSLATE_NOOP("Actions", "Type a cell's number"), QT_TRANSLATE_NOOP("Actions", "double-click")),
        (QT_TRANSLATE_NOOP("Actions", "Change a typed cell"), QT_TRANSLATE_NOOP("Actions", "Alt and wheel or drag")),
        (QT_TRANSLATE_NOOP("Actions", "Pan"), QT_TRANSLATE_NOOP("Actions", "drag")),
        (QT_TRANSLATE_NOOP("Actions", "Pan sideways"), QT_TRANSLATE_NOOP("Actions", "Shift and wheel")),
    ):
        table.append((translated("Move"), translated(str(text)), translated(str(hand))))
    return table
