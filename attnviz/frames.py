"""What comes out: frozen answers of the engine, NumPy only.

A stream begins with one `Outline` (what the picture is about), goes on with `Frame`s, one per panel and step of
refinement, and ends with `Finished`; a computation that fails ends with a `Failure` instead. Arrays are read-only
and belong to the frame: the engine never writes to them again.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from attnviz.spec import AnyShape, AttentionSpec, Causal, SpecError

Values = npt.NDArray[np.floating[Any]]


class CellClass(enum.IntFlag):
    """Kinds of cells. A pixel carries the set of those it covers."""

    ORDINARY = 1
    ZERO = 2
    NAN = 4
    DROPPED = 8
    PADDED = 16
    MASKED = 32


SHOWN_FIRST = (
    CellClass.NAN,
    CellClass.ORDINARY,
    CellClass.ZERO,
    CellClass.DROPPED,
    CellClass.PADDED,
    CellClass.MASKED,
)
"""Which class of a pixel's set is shown: the first of these that it holds."""


def shown_class(classes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The one class shown for each set of classes, same shape; 0 where the set is empty."""
    return _SHOWN[classes]


def _shown_table() -> npt.NDArray[np.uint8]:
    table = np.zeros(64, np.uint8)
    for kinds in range(64):
        table[kinds] = next((kind for kind in SHOWN_FIRST if kinds & kind), 0)
    return table


_SHOWN = _shown_table()


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cells of the whole map (not of the window) are of each kind; `future` counts visible future cells.

    -1 says that there may be some which nobody counted, as zeros of a map that is computed in tiles.
    """

    cells: int = 0
    masked: int = 0
    zero: int = 0
    nan: int = 0
    dropped: int = 0
    padded: int = 0
    future: int = 0

    def __add__(self, other: Counts) -> Counts:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Counts(*(-1 if -1 in pair else sum(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class Scale:
    """How values became colours: ``low`` and ``high`` take the first and last colour of the table.

    ``curve`` is linear or log (then ``low`` > 0). ``diverging`` scales are symmetric about 0. ``quantity`` is what
    the numbers beside the colour bar are: "value" itself, "weight x visible keys" or "share of the row's largest".
    """

    low: float
    high: float
    curve: str = "linear"
    diverging: bool = False
    quantity: str = "value"


@dataclass(frozen=True, slots=True)
class Crop:
    """The cells of a map of ``shape`` (rows, columns) that are shown: half-open ``rows`` × ``cols``."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    shape: tuple[int, int]

    @classmethod
    def of(cls, rows: tuple[int, int] | None, cols: tuple[int, int] | None, shape: tuple[int, int]) -> Crop:
        """``rows`` × ``cols``, None for all of them, cut at the map's edges. Raises `SpecError` for cells beyond."""
        spans = []
        for name, span, size in ("rows", rows, shape[0]), ("cols", cols, shape[1]):
            first, end = span or (0, size)
            if first >= size:
                raise SpecError(name, f"{name} begins at {first:,}, but the map has {size:,}: begin below that")
            spans.append((first, min(end, size)))
        return cls(spans[0], spans[1], shape)

    @property
    def size(self) -> tuple[int, int]:
        """How many rows and columns are shown."""
        return self.rows[1] - self.rows[0], self.cols[1] - self.cols[0]

    @property
    def is_whole(self) -> bool:
        return self.size == self.shape


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """What one panel shows.

    ``panel`` is ``head:N`` (``all`` for stages that all heads share) or ``thumbnail:STAGE``. ``rows`` and ``cols``
    are half-open cell ranges that the pixels cover; a pixel is ``level`` × ``level`` cells (a power of two, bins
    aligned to cell 0, the last one partial), ``values`` what ``pooling`` (`spec.Pooling`) makes of them (at level 1
    the number that was computed). A preview (``exact`` False) shows some of a pixel's rows, each over all its columns.
    ``values`` float (r, c), ``classes`` uint8 (r, c) of `CellClass` sets, ``rgb`` uint32
    (r, c) as 0xffRRGGBB. ``row_sums`` float64, one per row of ``rows``, where rows are weights, else None.
    ``counts`` are of this panel's whole map.
    """

    generation: int
    panel: str
    stage: str
    head: int | None
    rows: tuple[int, int]
    cols: tuple[int, int]
    level: int
    values: Values
    classes: npt.NDArray[np.uint8]
    rgb: npt.NDArray[np.uint32]
    scale: Scale
    counts: Counts
    row_sums: npt.NDArray[np.float64] | None = None
    exact: bool = True
    pooling: str = "max"


@dataclass(frozen=True, slots=True)
class StageShape:
    """A stage's name and the shape of its array for one batch item, such as (2, 6, 6)."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A line of the Module page: a parameter or buffer, its shape, and how many numbers it holds."""

    name: str
    kind: str
    shape: tuple[int, ...]
    numel: int
    dtype: str
    device: str


@dataclass(frozen=True, slots=True)
class Outline:
    """What the picture is about, sent before its frames.

    ``tokens`` name the keys; the queries are the last ``n_queries`` of them, unless ``query_names`` name these.
    ``dims`` name the value dimensions. ``glosses`` and ``dim_glosses`` say in English what tokens and dims mean.
    ``origin`` is the chip beside the tokens ("untrained: …", "worked by hand", "the book's seeds"). ``future_hidden``
    says whether the cells that ``mask_shape`` hides are hidden in the end; where it is False and ``has_future`` True
    they take a red frame.
    """

    generation: int
    stage: str
    tokens: tuple[str, ...]
    n_queries: int
    n_keys: int
    dims: tuple[str, ...]
    origin: str
    stages: tuple[StageShape, ...]
    parameters: tuple[ParameterRow, ...]
    panels: tuple[str, ...]
    has_future: bool
    future_hidden: bool
    device: str
    glosses: tuple[str, ...] = ()
    dim_glosses: tuple[str, ...] = ()
    mask_shape: AnyShape = field(default_factory=Causal)
    query_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a picture is: ``done`` of ``total`` steps, and the last preview that stands, of ``previews``.

    ``preview`` 0 says that no preview stands yet, or that none is needed. ``background`` says that what is looked at
    is exact already and the rest of the map is still being computed.
    """

    generation: int
    done: int
    total: int
    preview: int = 0
    previews: int = 0
    background: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The last frame has been sent: seconds of computing, bytes held for this request, and the budget in bytes.

    ``remarks`` are sentences about the numbers themselves, such as why a row is NaN; ``notes`` are about what was asked
    for, such as rows that see no key.
    """

    generation: int
    seconds: float
    held_bytes: int
    budget_bytes: int
    remarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A computation that ended without its picture: one sentence, what to do, and details for who asks.

    ``device_failed`` says that another device may do better. Without ``ends_picture`` it was a question or a job beside
    the picture, which goes on.
    """

    generation: int
    sentence: str
    advice: str
    details: str = ""
    device_failed: bool = False
    ends_picture: bool = True


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as torch reports it: ``name`` (cpu, cuda:0), ``title`` in words, bytes of memory (0 if unknown)."""

    name: str
    title: str
    total_bytes: int = 0
    free_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Probe:
    """A question for exact numbers: one cell in every head of the picture of ``generation``, ``head`` first.

    With ``whole_row`` that head's whole row is wanted too.
    """

    generation: int
    row: int
    col: int
    head: int = 0
    whole_row: bool = False


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The cell's exact value and class in each head, None where it is still being computed.

    ``row_sums`` of its row where rows are weights and they are at hand.
    """

    generation: int
    row: int
    col: int
    values: tuple[float | None, ...]
    classes: tuple[CellClass | None, ...]
    row_sums: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RowAnswer:
    """One head's whole row of the shown stage: ``values`` (n_keys,) and ``classes`` uint8 (n_keys,), one class each."""

    generation: int
    row: int
    head: int
    values: Values
    classes: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """A question for every stage of one query's row in one head of ``spec``, and of ``before`` (None: of no other)."""

    generation: int
    spec: AttentionSpec
    row: int
    head: int
    before: AttentionSpec | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RowStages:
    """Every stage of one query's row in one head, exact, as ``spec`` computes it.

    ``stages`` name → float: (n_keys,) for query × key stages, (1,) for row_sums, (D,) for queries, context and
    dropped_context; what belongs to keys or to all heads is left out. ``hidden`` bool (n_keys,) are the keys that the
    mask's shape keeps from the query, with mask *none* too; those in the half-open run ``padded`` are padding.
    ``masked`` bool (n_keys,) are the hidden ones that weigh nothing in the end, by mask or by top-k. ``dropped`` bool
    (n_keys,) are the cells that dropout took from the weights, None where it took from none. ``values`` (n_keys, D)
    are what the context mixes, None where there are none, or too many to read.
    """

    spec: AttentionSpec
    row: int
    head: int
    stages: Mapping[str, Values]
    hidden: npt.NDArray[np.bool_]
    masked: npt.NDArray[np.bool_]
    padded: tuple[int, int] = (0, 0)
    dropped: npt.NDArray[np.bool_] | None = None
    values: Values | None = None

    @property
    def last(self) -> str:
        """The last query × key stage: what is mixed in the end."""
        return "dropped_weights" if "dropped_weights" in self.stages else "weights"


STORY_KEYS: Final = 4096
"""A row of more keys is not told key by key: the strip below the map tells it."""


@dataclass(frozen=True, slots=True, eq=False)
class RowStory:
    """A row as it is now, and as it was in the state before (None where that has no such row)."""

    generation: int
    now: RowStages
    before: RowStages | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """Every stage whole, for a file: name → array, one batch item's or with a leading batch axis."""

    tokens: tuple[str, ...]
    stages: Mapping[str, Values] = field(default_factory=dict)


Message = Outline | Frame | Progress | Finished | Failure | ProbeAnswer | RowAnswer | RowStory


def level_for(cells: int, pixels: int) -> int:
    """Cells a pixel side, a power of two: the smallest with which ``cells`` fit into ``pixels``; 1 if they do."""
    level = 1
    while -(-cells // level) > max(pixels, 1):
        level *= 2
    return level


def said_bytes(count: int) -> str:
    """``count`` bytes in words: "5.9 GB"; powers of 1,000."""
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
