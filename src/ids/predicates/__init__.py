"""Predicates: binding, three-valued evaluation, normal forms, and the refinement into atoms."""

from ids.predicates.atoms import (
    VALUE,
    BooleanFactor,
    ConditionFactor,
    Factor,
    RangeFactor,
    Refinement,
    Split,
    TextFactor,
    cuts_of,
    null_of,
    representatives,
    split,
)
from ids.predicates.binder import (
    bind,
    bind_measure,
    bind_predicate,
    other_spelling,
    refuse_constant_tests,
)
from ids.predicates.functions import FUNCTIONS
from ids.predicates.normal_form import predicate_key
from ids.predicates.three_valued import (
    Measure,
    constants_first,
    evaluate_measure,
    exact_number,
    holds,
    kleene,
    measure,
    objects,
    overflow_message,
    truth,
)

__all__ = [
    "FUNCTIONS",
    "VALUE",
    "BooleanFactor",
    "ConditionFactor",
    "Factor",
    "Measure",
    "RangeFactor",
    "Refinement",
    "Split",
    "TextFactor",
    "bind",
    "bind_measure",
    "bind_predicate",
    "constants_first",
    "cuts_of",
    "evaluate_measure",
    "exact_number",
    "holds",
    "kleene",
    "measure",
    "null_of",
    "objects",
    "other_spelling",
    "overflow_message",
    "predicate_key",
    "refuse_constant_tests",
    "representatives",
    "split",
    "truth",
]
