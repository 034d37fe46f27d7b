"""What a person types or clicks at each step of both lessons, and what would be wrong."""

ANSWERS = {
    # cat-eats-fish: what a person types or clicks
    "eats": 24, "unmask": (1, 2), "taste": 0.31, "mask": 88, "taste-masked": 0.21, "cat": 1, "fish": 0, "fill-0": 50,
    "fill-inf": 100, "order": 0.76, "two-orders": 0, "stand-in": 0, "nothing-left": 33, "half": 1, "rounds": 91,
    "dropout": (0, 1), "mask-and-dropout": (0, 2), "ahead": 84.8, "one-class": 83, "one-class-training": 0.332,
    "questions": 0, "exam": 1.79,
    # journey
    "3.3": 3, "3.3.1": (1, 1), "3.3.1.2": 1, "3.3.1.3": 24, "3.3.1.4": 0.65, "3.3.2": (5, 4), "3.3.2.2": 6,
    "3.3.2.3": 0.4177, "3.4.1": 2, "3.4.1.2": (1, 1), "3.4.1.3": 23, "3.4.1.4": 0.3061, "3.4.2": 3,
    "3.4.2.2": (1, 0), "3.4.2.3": 0.33, "3.5.1": 81, "3.5.1.2": 0.37, "3.5.1.3": 0.5357, "3.5.1.4": 55,
    "3.5.1.5": (3, 5), "3.5.1.6": 0, "3.5.2": 15, "3.5.2.2": (1, 4), "3.5.3": -0.4519, "3.6.1": 4, "3.6.1.2": 6,
    "3.6.2": 3, "3.6.2.2": 1, "3.6.2.3": 0, "sizes": 64, "top-k": 2,
}  # fmt: skip

TORCH_DRAWS = {"3.5.2", "3.5.2.2"}
"""Steps whose answers torch's generator draws, which may draw others on another system."""


ELSEWHERE = {
    "ahead": ("84.8 %", "84.8", "0.848"), "rounds": ("91",), "exam": ("1.79",), "3.5.1": ("80", "80 %", "0.80"),
    "3.5.1.2": ("37 %", "0.37"), "3.5.1.3": ("54 %", ".5357"), "3.5.1.4": ("54", ".54"), "order": ("76 %",),
    "3.6.2.3": ("0", "6e−8"), "3.3.1.2": ("101", "100 %"), "taste": ("0.307",), "fill-inf": ("1.00",),
}  # fmt: skip
"""What else the screen prints of a step's answer: on a page, in the row, or made of printed numbers."""


def wrong_for(asked, right):
    if asked.measure.name == "empty":
        return right[0] + 1, right[1]
    if asked.kind == "cell":
        return right[0], 0 if right[1] else 1
    if asked.kind == "choice":
        return 1 - right
    return right + 7
