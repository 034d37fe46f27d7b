"""See what happens inside attention: every head's weights, live, with the mask, dropout and heads as controls."""

__version__ = "0.1.0"
