"""Every step of both lessons, played through the engine that the window runs: figures, questions and their answers."""

import math

import numpy as np
import pytest
import torch
from lesson_answers import ANSWERS, ELSEWHERE, TORCH_DRAWS, wrong_for
from reference import (
    CAT_CONTEXT_MASKED,
    CAT_CONTEXT_UNMASKED,
    CAT_WEIGHTS_MASKED,
    CAT_WEIGHTS_UNMASKED,
    CAUSAL_CONTEXT,
    CONTEXT_UNMASKED,
    DROPOUT_ROW_AFTER,
    DROPPED_ONES_6X6,
    DROPPED_WEIGHTS_NEG_INF,
    FILLED_WITH_NEG_INF,
    FILLED_WITH_ZERO,
    MASKED_SCORES_BEFORE_SCALING,
    SCALED_SCORES,
    SCORES,
    SPLIT_OUTPUT,
    SPLIT_WEIGHTS,
    STACKED_OUTPUT,
    STACKED_WEIGHTS,
    WEIGHTS_NEG_INF,
    WEIGHTS_THREE_STEP,
    WEIGHTS_UNMASKED,
    WEIGHTS_UNNORMALISED,
)

from attnviz import lesson_files, rendering, studies
from attnviz.engine import Engine
from attnviz.figure.marks import cell_number, formatted
from attnviz.frames import RowQuestion
from attnviz.guide import Guide, Verdict, answer_words, is_right, number_of
from attnviz.measures import Screen, found
from attnviz.questions.exam import ExamQuestion
from attnviz.questions.future_share import FutureShareQuestion
from attnviz.questions.heads import HeadsQuestion
from attnviz.questions.rounds import RoundsQuestion
from attnviz.session import Picture
from attnviz.spec import View, Viewport

SCRIPTS = {name: lesson_files.built_in(name) for name in lesson_files.names()}
STEPS = [pytest.param(name, step, id=f"{name}-{step.id}") for name, script in SCRIPTS.items() for step in script.steps]

# chapter 3, sections 3.3 and 3.4
INPUTS = (
    (0.43, 0.15, 0.89), (0.55, 0.87, 0.66), (0.57, 0.85, 0.64),
    (0.22, 0.58, 0.33), (0.77, 0.25, 0.1), (0.05, 0.8, 0.55),
)  # fmt: skip
BARE_SCORES = (
    (0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.631),
    (0.9544, 1.495, 1.4754, 0.8434, 0.707, 1.0865),
    (0.9422, 1.4754, 1.457, 0.8296, 0.7154, 1.0605),
    (0.4753, 0.8434, 0.8296, 0.4937, 0.3474, 0.6565),
    (0.4576, 0.707, 0.7154, 0.3474, 0.6654, 0.2935),
    (0.631, 1.0865, 1.0605, 0.6565, 0.2935, 0.945),
)
BARE_SHARES_ROW_1 = (0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656)
BARE_WEIGHTS = (
    (0.2098, 0.2006, 0.1981, 0.1242, 0.122, 0.1452),
    (0.1385, 0.2379, 0.2333, 0.124, 0.1082, 0.1581),
    (0.139, 0.2369, 0.2326, 0.1242, 0.1108, 0.1565),
    (0.1435, 0.2074, 0.2046, 0.1462, 0.1263, 0.172),
    (0.1526, 0.1958, 0.1975, 0.1367, 0.1879, 0.1295),
    (0.1385, 0.2184, 0.2128, 0.142, 0.0988, 0.1896),
)
BARE_CONTEXT = (
    (0.4421, 0.5931, 0.579), (0.4419, 0.6515, 0.5683), (0.4431, 0.6496, 0.5671),
    (0.4304, 0.6298, 0.551), (0.4671, 0.591, 0.5266), (0.4177, 0.6503, 0.5645),
)  # fmt: skip
RAND_QUERY_1 = (0.4306, 1.4551)
RAND_SCORES_ROW_1 = (1.2705, 1.8524, 1.8111, 1.0795, 0.5577, 1.544)
RAND_WEIGHTS_ROW_1 = (0.15, 0.2264, 0.2199, 0.1311, 0.0906, 0.182)
RAND_CONTEXT = (
    (0.2996, 0.8053), (0.3061, 0.821), (0.3058, 0.8203), (0.2948, 0.7939), (0.2927, 0.7891), (0.299, 0.804),
)  # fmt: skip
ROW_SUMS = ((0.1921,), (0.37,), (0.5357,), (0.6775,), (0.8415,), (1.0,))
SCALED_CAT = ((0.5, 0.5, 1.0), (0.0, 2.0, 1.0), (0.5, 0.5, 0.0))
ONE_CLASS_WEIGHTS = (
    (1.0, 0.0, 0.0, 0.0), (0.834, 0.166, 0.0, 0.0), (0.9782, 0.0088, 0.013, 0.0), (0.2137, 0.1225, 0.2904, 0.3734),
)  # fmt: skip
ONE_CLASS_DROPPED = (
    (2.0, 0.0, 0.0, 0.0), (0.0, 0.332, 0.0, 0.0), (1.9563, 0.0, 0.026, 0.0), (0.4274, 0.245, 0.0, 0.7468),
)  # fmt: skip
ONE_CLASS_CONTEXT = (
    (0.6039, 0.9817, 0.7981, -1.5046, 1.535, -0.0645, -0.8063, 1.9115),
    (0.4447, 0.7858, 0.4585, -1.2461, 1.4151, 0.1461, -0.4732, 1.4453),
    (0.6147, 0.9547, 0.7673, -1.4346, 1.4883, -0.0303, -0.7757, 1.8926),
    (1.3895, -0.038, 0.0537, 1.1728, -0.8547, 0.7956, -0.0374, 1.6819),
)
ONE_CLASS_CONTEXT_TRAINING = (
    (1.2078, 1.9634, 1.5961, -3.0092, 3.07, -0.1289, -1.6125, 3.823),
    (-0.118, -0.0659, -0.4142, 0.0176, 0.2698, 0.3998, 0.3985, -0.2979),
    (1.2357, 1.9129, 1.5567, -2.87, 2.9623, -0.0819, -1.5726, 3.8011),
    (1.5698, 0.0948, 0.2097, 0.7067, -0.804, 0.6053, -0.1796, 1.9896),
)
BATCHED_PRODUCT = (
    ((1.3208, 1.1631, 1.2879), (1.1631, 2.215, 1.8424), (1.2879, 1.8424, 2.0402)),
    ((0.4391, 0.7003, 0.5903), (0.7003, 1.3737, 1.062), (0.5903, 1.062, 0.9912)),
)
FUTURE_SHARE_UNMASKED = (84.8, 75.3, 62.3, 51.2, 39.4, 25.2, 13.9, 0.0)
FUTURE_SHARE_THEORY = (87.5, 75.0, 62.5, 50.0, 37.5, 25.0, 12.5, 0.0)

# the maps that a step's screen shows: (step, figures, row alone or None)
ON_THE_SCREEN = [
    ("3.3", INPUTS, None), ("3.3.1", BARE_SCORES[1], 1), ("3.3.1.2", BARE_SHARES_ROW_1, 1),
    ("3.3.1.3", BARE_WEIGHTS[1], 1), ("3.3.1.4", BARE_CONTEXT[1], 1), ("3.3.2", BARE_SCORES, None),
    ("3.3.2.2", BARE_WEIGHTS, None), ("3.3.2.3", BARE_CONTEXT, None), ("3.4.1", RAND_QUERY_1, 1),
    ("3.4.1.2", RAND_SCORES_ROW_1, 1), ("3.4.1.3", RAND_WEIGHTS_ROW_1, 1), ("3.4.1.4", RAND_CONTEXT, None),
    ("3.4.2", CONTEXT_UNMASKED, None), ("3.4.2.2", SCORES, None), ("3.4.2.3", SCALED_SCORES, None),
    ("3.5.1", WEIGHTS_UNMASKED, None), ("3.5.1.2", WEIGHTS_UNNORMALISED, None), ("3.5.1.3", ROW_SUMS, None),
    ("3.5.1.4", WEIGHTS_THREE_STEP, None), ("3.5.1.5", MASKED_SCORES_BEFORE_SCALING, None),
    ("3.5.1.6", WEIGHTS_NEG_INF, None), ("3.5.2", DROPPED_ONES_6X6, None),
    ("3.5.2.2", DROPPED_WEIGHTS_NEG_INF, None), ("3.5.3", CAUSAL_CONTEXT, None), ("3.6.1", STACKED_OUTPUT, None),
    ("3.6.1.2", STACKED_WEIGHTS, None), ("3.6.2.2", SPLIT_WEIGHTS, None), ("3.6.2.3", SPLIT_OUTPUT, None),
    ("eats", CAT_WEIGHTS_UNMASKED, None), ("mask", CAT_WEIGHTS_MASKED, None), ("fill-0", ((2.0, 0.0),), None),
    ("fill-inf", (FILLED_WITH_NEG_INF,), None), ("dropout", (DROPOUT_ROW_AFTER,), None),
    ("two-orders", CAT_WEIGHTS_MASKED, None), ("one-class", ONE_CLASS_WEIGHTS, None),
    ("one-class-training", ONE_CLASS_DROPPED, None),
]  # fmt: skip


STUDIED = {
    "rounds": lambda spec: RoundsQuestion(spec=spec),
    "heads": lambda spec: HeadsQuestion(spec=spec),
    "future-share": lambda _spec: FutureShareQuestion(),
    "exam": lambda _spec: ExamQuestion(),
}


@pytest.fixture(scope="module")
def engine():
    one = Engine()
    yield one
    one.close()


@pytest.fixture
def known_torch_stream():
    drawn = torch.empty(8).bernoulli_(0.5, generator=torch.Generator().manual_seed(123))
    if drawn.tolist() != [1, 1, 0, 1, 1, 0, 0, 0]:
        pytest.skip(f"torch's generator draws another stream on this system: {drawn.tolist()} for seed 123")


def step_of(name):
    return next(step for script in SCRIPTS.values() for step in script.steps if step.id == name)


def picture_of(engine, spec, view) -> Picture:
    return rendering.collect(engine, spec, view, Viewport())


def screen_of(engine, step) -> Screen:
    """What the window would hand to a measure, with every study finished."""
    before = None if step.before is None else picture_of(engine, *step.scene_before())
    row = step.select[0]
    story = engine.row_story(RowQuestion(1, step.spec, row, step.view.head or 0, step.before))
    answers, asked = {}, {}
    measure = step.question.measure.name if step.question is not None else ""
    if measure.startswith("study:"):
        name = measure.removeprefix("study:")
        asked[name] = STUDIED[name](step.spec)
        if name != "exam":  # whose line stands there from the start
            *_, answers[name] = studies.answers(asked[name])
    return Screen(picture_of(engine, *step.scene()), before, story, answers, asked)


def test_every_question_has_an_answer_here_and_every_step_is_known():
    asked = {step.id for script in SCRIPTS.values() for step in script.steps if step.question is not None}
    assert asked == set(ANSWERS)
    said = [step.id for script in SCRIPTS.values() for step in script.steps if step.question is None]
    assert said == ["limits"]


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_a_step_is_played_and_its_question_answered_on_the_screen(engine, request, name, step):
    if step.id in TORCH_DRAWS:
        request.getfixturevalue("known_torch_stream")
    screen = screen_of(engine, step)
    assert screen.picture.complete
    if step.question is None:
        assert found(step, screen) is None
        return
    measured = found(step, screen)
    right = ANSWERS[step.id]
    wrong = wrong_for(step.question, right)
    guide = Guide(SCRIPTS[name])
    guide.jump(step.id)
    assert guide.answer(right, None) is Verdict.UNKNOWN
    assert guide.answer(wrong, measured) is Verdict.WRONG
    guide.show_me(measured)
    assert guide.state.verdict is Verdict.SHOWN
    assert "{" not in guide.state.feedback
    guide.jump(step.id)
    assert guide.answer(right, measured) is Verdict.RIGHT


def printed(asked, value):
    """A number in every way in which a map, a row or the status line writes it."""
    ways = {formatted(value, "2"), cell_number(value, 2), f"{value:.2f}", f"{value:.4g}", answer_words(asked, value)}
    if asked.share:
        ways |= {f"{100 * value:.0f} %", f"{100 * value:.0f}"}
    return ways - {"1"} if asked.percent else ways  # beside its own % the field takes 1 for 1 %


@pytest.mark.parametrize(
    "step", [pytest.param(step, id=step.id) for script in SCRIPTS.values() for step in script.steps
             if step.question is not None and step.question.kind == "number"],
)  # fmt: skip
def test_a_number_is_right_as_the_screen_prints_it(engine, step):
    asked = step.question
    value = found(step, screen_of(engine, step))
    ways = [*printed(asked, value), *ELSEWHERE.get(step.id, ())]
    judged = {way: is_right(asked, number_of(way), value) for way in ways}
    assert judged == dict.fromkeys(ways, True)


def test_1_is_not_100_percent_where_a_percent_sign_stands_beside_the_field():
    for step in (step for script in SCRIPTS.values() for step in script.steps):
        if step.question is not None and step.question.percent:
            assert not is_right(step.question, number_of("1"), 1.0), step.id


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_on_another_screen_a_step_is_not_judged(engine, name, step):
    other = SCRIPTS["journey"].steps[0] if step.spec != SCRIPTS["journey"].steps[0].spec else step_of("3.5.1")
    assert found(step, Screen(picture_of(engine, *other.scene()))) is None
    assert found(step, Screen(None)) is None
    assert name in SCRIPTS


def assert_published(values, figures):
    expected = np.array(figures, np.float64)
    assert values.shape == expected.shape
    finite = np.isfinite(expected)
    assert (np.isneginf(values) == np.isneginf(expected)).all()
    assert np.abs(values[finite] - expected[finite]).max() <= 0.5001e-4 + 1e-6


@pytest.mark.parametrize(("name", "figures", "row"), ON_THE_SCREEN, ids=[name for name, _, _ in ON_THE_SCREEN])
def test_a_steps_map_shows_the_published_figures(engine, request, name, figures, row):
    if name in TORCH_DRAWS:
        request.getfixturevalue("known_torch_stream")
    picture = picture_of(engine, *step_of(name).scene())
    maps = np.stack([frame.values for frame in picture.heads])
    if row is not None:
        assert_published(maps[0][row], figures)
    else:
        assert_published(maps if np.ndim(figures) == 3 else maps[0], figures)


@pytest.mark.parametrize(
    ("name", "figures"),
    [("taste", CAT_CONTEXT_UNMASKED), ("taste-masked", CAT_CONTEXT_MASKED), ("one-class", ONE_CLASS_CONTEXT),
     ("one-class-training", ONE_CLASS_CONTEXT_TRAINING)],
)  # fmt: skip
def test_the_context_of_every_row_is_the_published_one(engine, name, figures):
    step = step_of(name)
    for row, expected in enumerate(figures):
        story = engine.row_story(RowQuestion(1, step.spec, row, 0))
        assert_published(story.now.stages["context"], expected)


def test_the_row_of_eats_is_told_with_its_scores_and_exponentials(engine):
    step = step_of("mask")
    story = engine.row_story(RowQuestion(1, step.spec, 1, 0, step.before))
    assert_published(story.now.stages["scaled_scores"], SCALED_CAT[1])
    exponentials = np.exp(story.now.stages["masked_scores"])
    assert exponentials.round(2).tolist() == pytest.approx([1, 7.39, 0])
    assert math.isclose(exponentials.sum(), 8.39, abs_tol=0.005)
    changed = [np.round(100 * stages.stages["weights"]).tolist() for stages in (story.before, story.now)]
    assert changed == [[9, 67, 24], [12, 88, 0]]


def test_a_row_filled_with_0_still_gives_the_forbidden_word_its_half(engine):
    step = step_of("fill-0")
    row = engine.row_story(RowQuestion(1, step.spec, 0, 0)).now
    assert_published(row.stages["weights"], FILLED_WITH_ZERO)
    assert row.stages["masked_scores"].tolist() == [0, 0]


def test_the_plain_shares_are_the_scores_over_their_sum(engine):
    bare = engine.arrays(step_of("3.3.1").spec).stages["scores"][0]
    typed = picture_of(engine, *step_of("3.3.1.2").scene()).heads[0].values
    assert np.abs(typed - bare / bare.sum(1, keepdims=True)).max() < 1e-6


def test_the_batched_product_stands_on_the_heads_page():
    step = step_of("3.6.2")
    assert step.page == "heads"
    *_, answer = studies.answers(HeadsQuestion(spec=step.spec))
    for head, figures in enumerate(BATCHED_PRODUCT):
        assert_published(answer.product.at_once[head], figures)
    assert answer.product.identical


def test_the_table_of_what_looks_ahead(engine):
    answer = screen_of(engine, step_of("ahead")).answers["future-share"]
    assert answer.unmasked.round(1).tolist() == list(FUTURE_SHARE_UNMASKED)
    assert answer.theory.round(1).tolist() == list(FUTURE_SHARE_THEORY)
    assert not answer.masked.any()


def test_rounds_agree_with_one_pass_only_with_a_mask(engine):
    step = step_of("rounds")
    screen = screen_of(engine, step)
    assert screen.answers["rounds"].worst < 1e-6
    assert (step.spec.mask, View().stage) == ("neg-inf", step.view.stage)


def test_a_row_that_may_see_nothing_is_a_third_each_and_in_half_precision_no_number(engine):
    thirds = picture_of(engine, *step_of("nothing-left").scene()).heads[0].values[0]
    assert thirds == pytest.approx([1 / 3] * 3)
    assert np.isnan(picture_of(engine, *step_of("half").scene()).heads[0].values[0]).all()


def test_the_row_sums_in_training_are_not_1(engine):
    sums = picture_of(engine, *step_of("one-class-training").scene()).heads[0].row_sums
    assert sums.round(4).tolist() == pytest.approx([2.0, 0.332, 1.9824, 1.4192], abs=1e-4)
    order = picture_of(engine, *step_of("order").scene()).heads[0].row_sums
    assert order[1] == pytest.approx(0.7553, abs=5e-5)


def test_batches_keep_their_leading_axis(engine):
    for name, shape in ("3.5.3", (2, 6, 2)), ("3.6.1", (2, 6, 4)), ("3.6.2.3", (2, 6, 2)):
        items = engine.arrays(step_of(name).spec).stages["output"]
        assert items.shape == shape
        assert (items[0] == items[1]).all()
