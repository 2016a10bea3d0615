from django.contrib import admin
from django.urls import include, path

from koda.views import chat
from runs.api import api

urlpatterns = [
    path("", chat, name="koda_chat"),
    path("c/<uuid:conversation_id>", chat, name="koda_conversation"),
    path("", include("streaming.urls")),
    path("api/", api.urls),
    path("admin/", admin.site.urls),
]
