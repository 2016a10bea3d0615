"""Queries whose SQL is made once give what the ORM gives, for all values and on all threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.test.utils import CaptureQueriesContext

from runs.models import Conversation, Run
from runs.prepared import Prepared
from runs.states import Status
from tests.fakes import run_in

pytestmark = pytest.mark.django_db(transaction=True)

BY_ID = Prepared(lambda pk: Conversation.objects.filter(pk=pk), UUID)


def test_rows_are_those_of_each_value():
    made = [Conversation.objects.create(title=title) for title in ("one", "two")]
    assert [BY_ID(one.pk) for one in made] == [[one] for one in made]
    assert [BY_ID(one.pk)[0].title for one in made] == ["one", "two"]
    assert BY_ID(uuid4()) == []


def test_values_of_several_kinds_go_where_they_belong():
    both = Prepared(
        lambda title, pk: Conversation.objects.filter(Q(pk=pk) | Q(title=title)).order_by("title"),
        str,
        UUID,
    )
    a, b, _ = [Conversation.objects.create(title=title) for title in "abc"]
    assert both("b", a.pk) == [a, b]
    assert both("stand-in 1", b.pk) == [b]


def test_relations_annotations_and_plain_values_come_as_ever():
    run = run_in(Conversation.objects.create(title="of a run"), Status.DONE)
    over = ExpressionWrapper(Q(status=Status.DONE), output_field=BooleanField())
    whole = Prepared(
        lambda pk: Run.objects.filter(pk=pk).select_related("conversation").annotate(over=over),
        UUID,
    )
    with CaptureQueriesContext(connection) as asked:
        [found] = whole(run.pk)
        assert found.conversation.title == "of a run"
        assert found.over is True
    assert len(asked) == 1
    columns = [field.attname for field in Run._meta.concrete_fields]
    assert [getattr(found, name) for name in columns] == [getattr(run, name) for name in columns]
    names = ("created_at", "usage", "conversation__title", "pk")
    plain = Prepared(lambda pk: Run.objects.filter(pk=pk).values_list(*names), UUID)
    assert plain(run.pk) == [(run.created_at, run.usage, "of a run", run.pk)]


def test_each_thread_asks_through_its_own_connection():
    made = Conversation.objects.create()
    BY_ID(made.pk)

    def ask() -> object:
        try:
            with CaptureQueriesContext(connection) as asked:
                return BY_ID(made.pk), len(asked)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(ask).result() == ([made], 1)


def test_a_value_that_does_not_reach_the_query_is_found_out():
    deaf = Prepared(lambda _title: Conversation.objects.all(), str)
    with pytest.raises(AssertionError, match="does not arrive"):
        deaf("x")
