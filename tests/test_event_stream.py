"""The response of a stream: its pieces as they are, unless somebody changes them; and for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from django.contrib.auth import get_user_model

from runs.models import Conversation
from runs.querysets import Owner
from streaming.views import Body, EventStream

PIECES = [b"retry: 2000\n\n", b"data: {}\n\n"]


class Source:
    """Notes when it is begun and when it ends."""

    def __init__(self) -> None:
        self.begun = self.ended = False

    async def pieces(self) -> AsyncIterator[bytes]:
        self.begun = True
        try:
            for piece in PIECES:
                yield piece
        finally:
            self.ended = True


async def test_pieces_arrive_as_they_are_and_begin_when_they_are_asked_for():
    source = Source()
    response = EventStream(Body(source.pieces))
    assert not source.begun
    arrived = [piece async for piece in aiter(response)]
    assert len(arrived) == len(PIECES)
    assert all(piece is sent for piece, sent in zip(arrived, PIECES, strict=True))


async def test_middleware_may_change_the_pieces():
    response = EventStream(Body(Source().pieces))

    async def shouting(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for piece in pieces:
            yield piece.upper()

    response.streaming_content = shouting(response.streaming_content)
    assert [piece async for piece in aiter(response)] == [piece.upper() for piece in PIECES]


async def test_a_response_that_is_not_read_to_its_end_ends_its_source():
    source = Source()
    async with aclosing(aiter(EventStream(Body(source.pieces)))) as pieces:
        assert await anext(pieces) == PIECES[0]
        assert not source.ended
    assert source.ended


async def test_a_response_that_is_not_read_at_all_begins_nothing():
    source = Source()
    async with aclosing(aiter(EventStream(Body(source.pieces)))):
        pass
    assert not source.begun


@pytest.mark.django_db
def test_owning_a_row_and_finding_it_are_the_same():
    users = [get_user_model().objects.create_user(name) for name in ("ann", "bob")]
    owners = [
        *(Owner(user=user) for user in users),
        *(Owner(visitor_key=key) for key in ("one", "two")),
        Owner(),
    ]
    made = [
        *(Conversation.objects.create(owner_id=user.pk) for user in users),
        *(Conversation.objects.create(visitor_key=key) for key in ("one", "two", "")),
    ]
    owned = [[owner.owns(row.owner_id, row.visitor_key) for row in made] for owner in owners]
    found = [
        [Conversation.objects.owned_by(owner).filter(pk=row.pk).exists() for row in made]
        for owner in owners
    ]
    assert owned == found
    assert [sum(row) for row in owned] == [1, 1, 1, 1, 0]
