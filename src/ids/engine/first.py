"""The first batch: it tells what the columns hold, and so what an engine's core is made of."""

from __future__ import annotations

from collections.abc import Mapping

from ids.engine.attending import attend
from ids.engine.conditions import bind_conditions
from ids.engine.core import Core
from ids.engine.incoming import Schema, columns_needed
from ids.engine.settings import Settings
from ids.errors import ScriptError, UnknownNameError
from ids.model.expression import Expression
from ids.model.table import Kind
from ids.model.window import Changelog
from ids.plan.script import unsupported_named
from ids.predicates.binding import bind_measure
from ids.source import Source

__all__ = ["first_core"]


def first_core(
    source: Source,
    settings: Settings,
    conditions: Mapping[str, Expression],
    measures: Mapping[str, Expression],
) -> Core:
    """An empty core for batches like this one; a clear error where a name is not among its columns.

    Without raw rows and without a sample, later batches need only the columns someone reads.
    """
    kinds = _kinds(source, conditions, measures)
    order_by = settings.order_by
    with unsupported_named(source.unsupported):
        predicates = bind_conditions(conditions, kinds)
        bound = tuple(bind_measure(measure, kinds) for measure in measures.values())
        if order_by is not None and order_by not in kinds:
            raise UnknownNameError("column", order_by, kinds)
    if not settings.retain and settings.sampling is None:
        needed = columns_needed([*predicates.values(), *bound], order_by)
        kinds = {name: kinds[name] for name in needed}
    keeps = settings.retain or not isinstance(settings.window, Changelog)
    schema = Schema(kinds, bound, order_by)
    core = Core(schema, predicates, retain=keeps, raw=settings.retain)
    attend(core, settings)
    return core


def _kinds(
    source: Source, conditions: Mapping[str, Expression], measures: Mapping[str, Expression]
) -> dict[str, Kind]:
    """What the columns hold; one that is all NULL holds what the conditions take it for."""

    def fits(name: str, kind: Kind) -> bool:
        tried = {**source.schema, **dict.fromkeys(source.untyped), name: kind}
        try:
            bind_conditions(conditions, tried)
            for measure in measures.values():
                bind_measure(measure, tried)
        except ScriptError:
            return False
        return True

    untyped = {
        name: next((kind for kind in Kind if fits(name, kind)), Kind.NUMBER)
        for name in source.untyped
    }
    return {**source.schema, **untyped}
