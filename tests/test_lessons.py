import pytest
import torch
from passes import computed, output, stage
from reference import (
    CAT_CONTEXT_MASKED,
    CAT_CONTEXT_UNMASKED,
    CAT_WEIGHTS_MASKED,
    CAT_WEIGHTS_UNMASKED,
    CONTEXT_UNMASKED,
    DROPOUT_ROW,
    DROPOUT_ROW_AFTER,
    DROPPED_ONES_6X6,
    DROPPED_WEIGHTS_NEG_INF,
    FILLED_WITH_NEG_INF,
    FILLED_WITH_ZERO,
    MASKED_SCORES_BEFORE_SCALING,
    NEG_INF,
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

from attnviz.spec import QUERY_KEY_STAGES, Lesson, TypedScores, TypedWeights, edited, make_spec

CAT = Lesson(name="cat-eats-fish")
SEED_THAT_DROPS_THE_SECOND_CELL_ALONE = 14


def assert_published(cells, figures, decimals=4):
    expected = torch.tensor(figures, dtype=torch.float64)
    assert cells.shape == expected.shape
    assert torch.equal(torch.isinf(cells), torch.isinf(expected))
    finite = torch.isfinite(expected)
    assert float((cells.double() - expected)[finite].abs().max()) <= 0.5001 * 10**-decimals + 1e-6


@pytest.fixture
def known_torch_stream():
    drawn = torch.empty(8).bernoulli_(0.5, generator=torch.Generator().manual_seed(123))
    if drawn.tolist() != [1, 1, 0, 1, 1, 0, 0, 0]:
        pytest.skip(f"torch's generator draws another stream on this system: {drawn.tolist()} for seed 123")


# --------------------------------------------------------------------------------------------------------- the figures

JOURNEY = make_spec(num_heads=1, d_out=2, seed=789)


@pytest.mark.parametrize(
    ("mask", "name", "figures"),
    [
        ("none", "scores", SCORES),
        ("none", "scaled_scores", SCALED_SCORES),
        ("none", "weights", WEIGHTS_UNMASKED),
        ("none", "context", CONTEXT_UNMASKED),
        ("three-step", "unmasked_weights", WEIGHTS_UNMASKED),
        ("three-step", "unnormalised_weights", WEIGHTS_UNNORMALISED),
        ("three-step", "row_sums", [[sum(row)] for row in WEIGHTS_UNNORMALISED]),
        ("three-step", "weights", WEIGHTS_THREE_STEP),
        ("neg-inf", "weights", WEIGHTS_NEG_INF),
    ],
)
@pytest.mark.parametrize("implementation", ["stacked", "split"])
def test_journey(mask, name, figures, implementation):
    decimals = 3 if name == "row_sums" else 4  # sums of six rounded numbers
    assert_published(stage(edited(JOURNEY, mask=mask, implementation=implementation), name), figures, decimals)


def test_journey_masked_before_scaling():
    spec = edited(JOURNEY, scale_after_mask=True)
    every = computed(spec).stages
    assert [name for name in every if name in QUERY_KEY_STAGES] == [
        "scores",
        "masked_scores",
        "scaled_scores",
        "weights",
    ]
    assert_published(every["masked_scores"][0], MASKED_SCORES_BEFORE_SCALING)
    scaled = [[s if k <= q else NEG_INF for k, s in enumerate(row)] for q, row in enumerate(SCALED_SCORES)]
    assert_published(every["scaled_scores"][0], scaled)
    assert_published(every["weights"][0], WEIGHTS_NEG_INF)


@pytest.mark.parametrize("head", [0, 1])
def test_two_stacked_heads(head):
    spec = make_spec(num_heads=2, d_out=4, implementation="stacked", seed=123)
    assert_published(stage(spec, "weights", head), STACKED_WEIGHTS[head])
    assert_published(output(spec)[0], STACKED_OUTPUT)


@pytest.mark.parametrize("head", [0, 1])
def test_two_split_heads_in_a_batch(head):
    spec = make_spec(num_heads=2, d_out=2, implementation="split", seed=123, batch=2)
    for item in computed(spec, head).stages["weights"]:
        assert_published(item, SPLIT_WEIGHTS[head])
    for item in output(spec):
        assert_published(item, SPLIT_OUTPUT)


@pytest.mark.usefixtures("known_torch_stream")
def test_journeys_dropped_weights():
    spec = edited(JOURNEY, dropout=0.5, dropout_seed=123, dropout_generator="torch")
    assert_published(stage(spec, "dropped_weights"), DROPPED_WEIGHTS_NEG_INF)


@pytest.mark.usefixtures("known_torch_stream")
def test_dropped_ones():
    ones = TypedWeights(weights=((1.0,) * 6,) * 6)
    spec = make_spec(ones, dropout=0.5, dropout_seed=123, dropout_generator="torch")
    assert stage(spec, "dropped_weights").tolist() == [list(row) for row in DROPPED_ONES_6X6]


@pytest.mark.parametrize(
    ("mask", "weights", "context"),
    [
        ("none", CAT_WEIGHTS_UNMASKED, CAT_CONTEXT_UNMASKED),
        ("neg-inf", CAT_WEIGHTS_MASKED, CAT_CONTEXT_MASKED),
        ("three-step", CAT_WEIGHTS_MASKED, CAT_CONTEXT_MASKED),
    ],
)
def test_cat_eats_fish(mask, weights, context):
    spec = make_spec(CAT, mask=mask)
    assert_published(stage(spec, "weights"), weights)
    assert_published(stage(spec, "context"), context)


@pytest.mark.parametrize(("scores", "figures"), [((0.0, 0.0), FILLED_WITH_ZERO), ((NEG_INF, 0.0), FILLED_WITH_NEG_INF)])
def test_filling_with_0_and_with_minus_infinity(scores, figures):
    spec = make_spec(TypedScores(scores=(scores,)), mask="none")
    assert stage(spec, "weights").tolist() == [list(figures)]


def test_dropping_the_second_cell_alone():
    spec = make_spec(
        TypedWeights(weights=(DROPOUT_ROW,)), dropout=0.5, dropout_seed=SEED_THAT_DROPS_THE_SECOND_CELL_ALONE
    )
    result = computed(spec)
    assert result.kept.tolist() == [[[True, False, True, True]]]
    assert_published(result.stages["dropped_weights"][0], [DROPOUT_ROW_AFTER], decimals=6)
