"""The HTTP API. Each operation asks a service or reads; none writes by itself."""

from runs.api import refusals
from runs.api.access import BearerToken, SessionOrVisitor
from runs.api.conversations import router as conversation_routes
from runs.api.openapi import Api
from runs.api.runs import router as run_routes

api = Api(
    title="Koda",
    version="1",
    description="Ask agents, and watch their answers. Errors are problem documents (RFC 9457).",
    auth=[BearerToken(), SessionOrVisitor()],
    docs_url="docs",
    openapi_url="openapi.json",
    urls_namespace="koda_api",
    parser=refusals.JsonParser(),
)
refusals.register(api)
api.add_router("", conversation_routes)
api.add_router("", run_routes)

__all__ = ["api"]
