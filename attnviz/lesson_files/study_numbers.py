"""What of the studies' answers a lesson may ask for: numbers, by the study's name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attnviz.lesson_files.script import Page

_N: Final = r"\.\d{1,6}"
_OF_A_HEAD: Final = rf"(?:head|largest|ulps|mean|identical|(?:at|sum_error|future|nan_rows){_N})"
_OF_A_ROW: Final = "cells|masked|kept|dropped_row|sums|steps|largest|average|expected|vanished|vanishing|n_visible"
_EXHIBIT: Final = rf"level|difference|nan_rows|hidden|(?:at|row_sums){_N}"
_FORMS: Final = rf"tokens|stacked_products|split_products|drawn|copied|identical|(?:stacked|split)_matrix{_N}"

STUDIES: Final[Mapping[str, tuple[Page, tuple[str, ...]]]] = MappingProxyType(
    {
        "compare": ("compare", (rf"worst\.{_OF_A_HEAD}", rf"heads{_N}\.{_OF_A_HEAD}", "left_out")),
        "dropout": (
            "dropout",
            ("mean", "deviation|factor|p|row", rf"(?:{_OF_A_ROW}){_N}", rf"(?:mean|whole|hidden)_map{_N}{_N}"),
        ),
        "exam": (
            "exam",
            ("floor", rf"curves{_N}\.(?:steps|training|exam){_N}", rf"curves{_N}\.(?:future{_N}|weights{_N}{_N}){_N}"),
        ),
        "future-share": ("ahead", (rf"(?:unmasked|masked|theory|newest){_N}",)),
        "gallery": (
            "masks",
            (
                "largest", rf"scores{_N}", rf"exhibits{_N}\.(?:{_EXHIBIT})",
                rf"masked_row{_N}\.(?:refused|weights{_N})", rf"depths{_N}\.(?:fill|below|held|weight|refused)",
            ),
        ),
        "heads": ("heads", (rf"ladder{_N}\.(?:difference|identical)", r"product\.identical", rf"forms\.(?:{_FORMS})")),
        "rounds": (
            "rounds",
            (
                "cells_recomputed|cells_cached|cells_in_one_pass|exact|worst", rf"differences{_N}",
                rf"(?:last_rows|whole|hidden){_N}{_N}", rf"(?:maps|hidden_maps){_N}{_N}{_N}",
            ),
        ),
    }
)  # fmt: skip
"""Each study's page, and patterns of the fields of its answer, with places in them, that are numbers."""

IN_PERCENT: Final = frozenset({"future-share"})
"""Studies whose numbers are percents: measured as shares, as all others are."""

EXAMPLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "compare": "worst.largest",
        "dropout": "mean",
        "exam": "floor",
        "future-share": "unmasked.0",
        "gallery": "exhibits.0.difference",
        "heads": "ladder.3.difference",
        "rounds": "cells_recomputed",
    }
)
"""One such field of each study."""
