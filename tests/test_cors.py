"""Pages of other origins: shut out by default, let in by name, and never with cookies."""

from __future__ import annotations

import pytest
from django.test import AsyncClient, Client

from koda import env
from runs.conf import ConfigError
from tests.live import Launcher

SHOP = "https://shop.example.com"
PREFLIGHT = {
    "Origin": SHOP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, idempotency-key, last-event-id",
}
ALLOWED = "Access-Control-Allow-Origin"


def test_other_origins_are_shut_out_by_default(client: Client):
    answer = client.options("/api/agents", headers=PREFLIGHT)
    assert ALLOWED not in answer.headers


@pytest.mark.django_db
def test_a_listed_origin_may_call_the_api_and_read_its_refusals(client: Client, settings):
    settings.CORS_ALLOWED_ORIGINS = [SHOP]
    preflight = client.options("/api/agents", headers=PREFLIGHT)
    assert preflight.status_code == 200
    assert preflight.headers[ALLOWED] == SHOP
    for header in ("authorization", "idempotency-key", "last-event-id"):
        assert header in preflight.headers["Access-Control-Allow-Headers"]
    for path in ("/api/agents", "/api/nowhere"):
        answer = client.get(path, headers={"Origin": SHOP, "Authorization": "Bearer wrong"})
        assert answer.status_code in {401, 404}
        assert answer.headers[ALLOWED] == SHOP
        assert "Access-Control-Allow-Credentials" not in answer.headers
        other = client.get(path, headers={"Origin": "https://evil.example.com"})
        assert ALLOWED not in other.headers
    assert ALLOWED not in client.get("/", headers={"Origin": SHOP}).headers


@pytest.mark.django_db(transaction=True)
async def test_the_stream_is_open_to_a_listed_origin_too(async_client: AsyncClient, settings):
    settings.CORS_ALLOWED_ORIGINS = [SHOP]
    url = "/api/runs/00000000-0000-7000-8000-000000000000/stream"
    answer = await async_client.get(url, headers={"Origin": SHOP})
    assert answer.headers[ALLOWED] == SHOP


@pytest.mark.parametrize("value", ["*", "shop.example.com", f"{SHOP}/", "https://*.example.com"])
def test_what_is_no_origin_stops_the_start(monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv("KODA_CORS_ORIGINS", f"{SHOP}, {value}")
    with pytest.raises(ConfigError, match="KODA_CORS_ORIGINS"):
        env.origins("KODA_CORS_ORIGINS")


async def test_the_environment_lists_them(launch: Launcher):
    system = launch(KODA_CORS_ORIGINS=SHOP, DJANGO_CSRF_TRUSTED_ORIGINS=SHOP)
    async with system.visitor() as visitor:
        answer = await visitor.http.get("/api/agents", headers={"Origin": SHOP})
        assert answer.headers[ALLOWED] == SHOP
        posted = await visitor.http.post("/api/conversations", json={}, headers={"Origin": SHOP})
        assert posted.status_code == 201
        foreign = {"Origin": "https://evil.example.com"}
        refused = await visitor.http.post("/api/conversations", json={}, headers=foreign)
        assert refused.json()["code"] == "csrf_failed"
