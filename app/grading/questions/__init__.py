"""Questions with a key: number, choice, order, pairs, configuration and layout. Pure.

Cards, problems and interviews ask with them, so that the same question gets the same verdict and credit wherever it is
asked. An answer is one text whatever the question is: a quantity, ids of options, items in order, a plan's fields, or
axes in order with their degrees.
"""

from app.grading.questions.choice import ChoiceQuestion, Option, Standing
from app.grading.questions.configuration import ConfigurationQuestion
from app.grading.questions.layout import LayoutQuestion
from app.grading.questions.number import Carried, NumberQuestion, carried_values, distinct_slips, read_number
from app.grading.questions.order import OrderItem, OrderQuestion
from app.grading.questions.pairs import PairsQuestion, Right
from app.grading.questions.shuffling import shuffled

Question = NumberQuestion | ChoiceQuestion | OrderQuestion | PairsQuestion | ConfigurationQuestion | LayoutQuestion

__all__ = [
    "Carried",
    "ChoiceQuestion",
    "ConfigurationQuestion",
    "LayoutQuestion",
    "NumberQuestion",
    "Option",
    "OrderItem",
    "OrderQuestion",
    "PairsQuestion",
    "Question",
    "Right",
    "Standing",
    "carried_values",
    "distinct_slips",
    "read_number",
    "shuffled",
]
