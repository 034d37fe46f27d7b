"""Light and dark: palettes of our own and one style sheet, since Qt's colour schemes do nothing on many systems."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import PurePath

from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication

FAMILY = "attnviz Sans"


@dataclass(frozen=True, slots=True)
class Colours:
    """The window's colours, as #rrggbb."""

    ground: str
    card: str
    field: str
    hairline: str
    ink: str
    muted: str
    accent: str
    accent_soft: str
    on_accent: str
    leak: str
    good: str


LIGHT = Colours(
    ground="#f6f6f4", card="#ffffff", field="#f6f6f4", hairline="#dcdde0", ink="#1c1d22", muted="#6b6e7b",
    accent="#3556d8", accent_soft="#e6ebfb", on_accent="#ffffff", leak="#d6302b", good="#2f9e44",
)  # fmt: skip
DARK = Colours(
    ground="#17181c", card="#202127", field="#17181c", hairline="#34363d", ink="#ececf0", muted="#9a9dab",
    accent="#6d8bff", accent_soft="#26304f", on_accent="#0f1117", leak="#ff5c57", good="#40b85a",
)  # fmt: skip


def colours(dark: bool) -> Colours:
    """The window's colours, dark or light."""
    return DARK if dark else LIGHT


def current() -> Colours:
    """The colours in use, told by the application's palette."""
    return colours(QApplication.palette().color(QPalette.ColorRole.Window).lightness() < 128)


def apply_theme(application: QApplication, dark: bool) -> None:
    """Give the application its style, palette, font and style sheet."""
    c = colours(dark)
    application.setStyle("Fusion")
    font = QFont(FAMILY)
    font.setPointSizeF(10.5)
    application.setFont(font)
    palette = QPalette()
    roles = QPalette.ColorRole
    for role, colour in {
        roles.Window: c.ground, roles.WindowText: c.ink, roles.Base: c.card, roles.AlternateBase: c.ground,
        roles.Text: c.ink, roles.Button: c.card, roles.ButtonText: c.ink, roles.ToolTipBase: c.card,
        roles.ToolTipText: c.ink, roles.Highlight: c.accent, roles.HighlightedText: c.on_accent, roles.Link: c.accent,
        roles.PlaceholderText: c.muted, roles.Accent: c.accent,
    }.items():  # fmt: skip
        palette.setColor(role, QColor(colour))
    for role in (roles.WindowText, roles.Text, roles.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(c.muted))
    application.setPalette(palette)
    application.setStyleSheet(_sheet(c))


def _tick(c: Colours) -> str:
    """The file of the tick in a check box, in the colour of what stands on the accent."""
    name = "tick-light.png" if QColor(c.on_accent).lightness() > 128 else "tick-dark.png"
    return PurePath(str(resources.files("attnviz.resources").joinpath("icons", name))).as_posix()


def _sheet(c: Colours) -> str:
    return f"""
QToolTip {{ color: {c.ink}; background: {c.card}; border: 1px solid {c.hairline}; padding: 4px; }}
QMenuBar {{ background: {c.card}; border-bottom: 1px solid {c.hairline}; padding: 3px 10px; }}
QMenuBar::item {{ padding: 4px 12px; background: transparent; border-radius: 5px; }}
QMenuBar::item:selected {{ background: {c.accent_soft}; }}
QMenu {{ background: {c.card}; border: 1px solid {c.hairline}; padding: 4px; }}
QMenu::item {{ padding: 5px 26px 5px 22px; border-radius: 4px; }}
QMenu::item:selected {{ background: {c.accent_soft}; color: {c.ink}; }}
QMenu::item:disabled {{ color: {c.muted}; }}
QStatusBar {{ background: {c.card}; border-top: 1px solid {c.hairline}; }}
QStatusBar::item {{ border: none; }}
QFrame[card="true"] {{ background: {c.card}; border: 1px solid {c.hairline}; border-radius: 10px; }}
QFrame[looked="true"] {{ border: 2px solid {c.accent}; }}
QFrame[card="soft"] {{ background: {c.accent_soft}; border: none; border-radius: 10px; }}
QFrame[card="alarm"] {{ background: {c.card}; border: 1px solid {c.leak}; border-radius: 8px; }}
QLabel[role="muted"] {{ color: {c.muted}; }}
QLabel[role="heading"] {{ color: {c.muted}; font-size: 9pt; letter-spacing: 1px; }}
QLabel[role="problem"] {{ color: {c.leak}; }}
QLabel[role="sentence"] {{ font-size: 14pt; }}
QLabel[verdict="leak"] {{ color: {c.leak}; }}
QLabel[verdict="good"] {{ color: {c.good}; }}
QLabel[verdict="muted"] {{ color: {c.muted}; }}
QLabel[role="second"] {{ font-size: 11.5pt; }}
QScrollArea, QScrollArea > QWidget > QWidget {{ background: transparent; }}
QPushButton {{ background: {c.card}; border: 1px solid {c.hairline}; border-radius: 7px; padding: 4px 12px; }}
QPushButton:hover {{ border-color: {c.accent}; }}
QPushButton:focus {{ border: 2px solid {c.accent}; padding: 3px 11px; }}
QPushButton:disabled {{ color: {c.muted}; }}
QPushButton[segment="true"] {{ background: transparent; border: none; border-radius: 6px; padding: 5px 10px; }}
QPushButton[segment="true"]:checked {{ background: {c.accent}; color: {c.on_accent}; }}
QPushButton[segment="true"]:focus {{ border: 2px solid {c.accent}; padding: 3px 8px; }}
QPushButton[segment="true"]:checked:disabled {{ background: {c.hairline}; color: {c.muted}; }}
QPushButton[link="true"] {{ background: transparent; border: none; color: {c.accent}; padding: 2px 0;
  font-size: 11pt; }}
QPushButton[link="true"]:focus {{ text-decoration: underline; }}
QFrame[segments="true"] {{ background: {c.field}; border: 1px solid {c.hairline}; border-radius: 8px; }}
QLineEdit, QPlainTextEdit {{
  background: {c.card}; border: 1px solid {c.hairline}; border-radius: 6px; padding: 3px 6px;
  selection-background-color: {c.accent}; selection-color: {c.on_accent}; }}
QLineEdit:focus, QPlainTextEdit:focus {{ border: 1px solid {c.accent}; }}
QAbstractSpinBox QLineEdit {{ border: none; background: transparent; padding: 0; }}
QScrollBar:vertical {{ background: transparent; width: 10px; margin: 2px; }}
QScrollBar::handle:vertical {{ background: {c.hairline}; border-radius: 3px; min-height: 24px; }}
QScrollBar::handle:vertical:hover {{ background: {c.muted}; }}
QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: transparent; }}
QComboBox QAbstractItemView {{ background: {c.card}; border: 1px solid {c.hairline}; }}
QCheckBox::indicator {{ width: 14px; height: 14px; background: {c.card}; border: 1px solid {c.muted};
  border-radius: 3px; }}
QCheckBox::indicator:hover, QCheckBox:focus::indicator {{ border-color: {c.accent}; }}
QCheckBox::indicator:checked {{ background: {c.accent}; border-color: {c.accent}; image: url("{_tick(c)}"); }}
QCheckBox::indicator:disabled {{ border-color: {c.hairline}; }}
QCheckBox::indicator:checked:disabled {{ background: {c.muted}; border-color: {c.muted}; }}
QSlider::groove:horizontal {{ background: {c.hairline}; height: 4px; border-radius: 2px; }}
QSlider::sub-page:horizontal {{ background: {c.accent}; height: 4px; border-radius: 2px; }}
QSlider::sub-page:horizontal:disabled {{ background: {c.muted}; }}
QSlider::handle:horizontal {{ background: {c.card}; border: 2px solid {c.accent}; width: 12px; margin: -6px 0;
  border-radius: 8px; }}
QSlider::handle:horizontal:hover, QSlider::handle:horizontal:focus {{ background: {c.accent_soft}; }}
QSlider::handle:horizontal:disabled {{ border-color: {c.muted}; }}
QSplitter::handle {{ background: transparent; }}
QTabBar {{ background: transparent; }}
QTabBar::tab {{ background: transparent; border: none; border-radius: 6px; padding: 4px 5px; margin: 1px;
  color: {c.muted}; font-size: 10pt; }}
QTabBar::tab:hover {{ color: {c.ink}; }}
QTabBar::tab:selected {{ background: {c.accent_soft}; color: {c.ink}; }}
QTabBar::tab:focus {{ border: 1px solid {c.accent}; padding: 3px 4px; }}
QTableWidget {{ background: {c.card}; border: none; gridline-color: {c.hairline}; }}
QHeaderView::section {{ background: {c.card}; border: none; border-bottom: 1px solid {c.hairline}; color: {c.muted};
  padding: 4px 8px; }}
QProgressBar {{ background: {c.field}; border: 1px solid {c.hairline}; border-radius: 4px; height: 8px; }}
QProgressBar::chunk {{ background: {c.accent}; border-radius: 3px; }}
"""
