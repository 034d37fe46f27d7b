"""What was once measured of four ways to hide the future, in eps of the largest output, and what is measured now."""

import leaky_modules
import pytest

from attnviz import subjects
from attnviz.studies.gallery import threshold
from attnviz.studies.leak import Plan, answers
from attnviz.studies.leak.verdicts import verdict_of
from attnviz.subjects import Wishes

MEASURED = {
    "three-step, unit inputs": {"float64": 0.95, "float32": 0.95, "bfloat16": 0.48, "float16": 0.48},
    "three-step, inputs x2": {"float64": 1.7, "float32": 1.1, "bfloat16": 0.48, "float16": 28},
    "fill -12": {"float64": 7e11, "float32": 1300, "bfloat16": 0.48, "float16": 0.24},
    "no division": {"float64": 1.2e15, "float32": 2.2e6, "bfloat16": 33, "float16": 270},
}
HOW = {
    "three-step, unit inputs": (leaky_modules.three_step, Wishes(d_model=4), {"length": 16}),
    "three-step, inputs x2": (leaky_modules.three_step, Wishes(d_model=4), {"length": 16, "scale": 2.0, "seed": 4}),
    "fill -12": (leaky_modules.FillTwelve, Wishes(), {}),
    "no division": (leaky_modules.NotDivided, Wishes(), {}),
}
THRESHOLDS = {"float16": 17.33, "bfloat16": 92.88, "float32": 103.97}


@pytest.mark.parametrize("row", MEASURED)
def test_each_row_gets_the_verdict_that_its_figures_imply(row):
    made, wishes, given = HOW[row]
    subject = subjects.build(made, row, wishes)
    *_, answer = answers(subject, Plan(factors=(1.0,), **given))
    assert [reading.dtype for reading in answer.readings] == list(MEASURED[row])
    for reading in answer.readings:
        then = MEASURED[row][reading.dtype]
        print(f"{row}: {reading.dtype} {reading.figure:.3g}, then {then:g}, factor {reading.figure / then:.2g}")  # noqa: T201 (pytest -s)
        assert reading.verdict == verdict_of(then, MEASURED[row]["float64"])


@pytest.mark.parametrize("dtype", THRESHOLDS)
def test_its_thresholds_hold(dtype):
    assert threshold(dtype) == pytest.approx(THRESHOLDS[dtype], abs=0.5)
