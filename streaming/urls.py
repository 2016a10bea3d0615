from django.urls import path

from streaming.health import healthz, readyz
from streaming.scrape import metrics
from streaming.views import stream

urlpatterns = [
    path("api/runs/<uuid:run_id>/stream", stream, name="koda_stream"),
    path("healthz", healthz, name="koda_healthz"),
    path("readyz", readyz, name="koda_readyz"),
    path("metrics", metrics, name="koda_metrics"),
]
