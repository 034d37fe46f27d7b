"""What studies are asked and what they answer: one room a study, each with a frozen question and a frozen answer.

Questions are msgspec structs, so that the command line and files can say them; answers are NumPy and floats alone. An
answer is *partial* until ``done`` reaches ``total``: a study streams them, each complete in itself.
"""

from attnviz.questions.base import Answer, Question

__all__ = ["Answer", "Question"]
