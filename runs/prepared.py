"""ORM queries that are asked so often that putting them together would cost more than asking.

For a query of one row Django spends several times as long on making its SQL as the database on
answering. Here the SQL is made once for each database; what comes back is made into objects by
the ORM as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet
from django.db.models.sql.compiler import SQLCompiler

Row = TypeVar("Row")
Value = str | UUID


class Prepared(Generic[Row]):
    """A query for values that change: called with them, it answers with the rows.

    `build` makes its query set for stand-ins of these kinds. It may not look at them or at
    anything else that changes, and each has to arrive among the parameters as it is.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Row]], *kinds: type[Value]) -> None:
        self._build = build
        self._stand_ins = [_stand_in(kind, number) for number, kind in enumerate(kinds)]
        self._compiled: dict[str, _Compiled] = {}

    def __call__(self, *values: Value) -> list[Row]:
        """The rows for these values, in their order. Raises database errors."""
        alias = self._queryset.db
        compiled = self._compiled.get(alias)
        if compiled is None:
            compiled = _compile(self._queryset, alias, self._stand_ins)
            self._compiled[alias] = compiled
        asked: Any = self._queryset.all()
        asked.query.get_compiler = lambda *_, **__: compiled.compiler(alias, values)
        return list(asked)

    def first(self, *values: Value) -> Row | None:
        """The first of the rows, or None."""
        return next(iter(self(*values)), None)

    @cached_property
    def _queryset(self) -> QuerySet[Any, Row]:
        return self._build(*self._stand_ins)


def _stand_in(kind: type[Value], number: int) -> Value:
    return UUID(int=2**127 + number) if kind is UUID else f"stand-in {number}"


@dataclass(frozen=True, slots=True)
class _Compiled:
    template: SQLCompiler
    sql: str
    parameters: Sequence[Any]
    places: Sequence[tuple[int, int]]
    """Which of the parameters is which of the values."""

    def compiler(self, alias: str, values: Sequence[Value]) -> SQLCompiler:
        """As if it had compiled the query for these values, on this thread's connection."""
        connection = connections[alias]
        parameters = list(self.parameters)
        for place, number in self.places:
            parameters[place] = _adapted(values[number], connection)
        made = copy(self.template)
        made.connection = connection
        made.as_sql = lambda *_, **__: (self.sql, tuple(parameters))  # type: ignore[method-assign]
        return made


def _compile(queryset: QuerySet[Any, Any], alias: str, stand_ins: Sequence[Value]) -> _Compiled:
    connection = connections[alias]
    template = queryset.query.get_compiler(connection=connection)
    sql, parameters = template.as_sql()
    adapted = [_adapted(stand_in, connection) for stand_in in stand_ins]
    places = [
        (place, adapted.index(parameter))
        for place, parameter in enumerate(parameters)
        if parameter in adapted
    ]
    if {number for _, number in places} != set(range(len(stand_ins))):
        raise AssertionError("a value does not arrive among the parameters of its query")
    return _Compiled(template, sql, parameters, places)


def _adapted(value: Value, connection: Any) -> Value:  # noqa: ANN401
    """As fields hand it to the driver."""
    if isinstance(value, UUID) and not connection.features.has_native_uuid_field:
        return value.hex
    return value
