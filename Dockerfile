# Koda's image: the gateway by default; `docker-compose.yml` runs worker and migrations from it too.

FROM python:3.13-slim AS packages
RUN python -m venv /opt/koda
WORKDIR /build
# Without the sources, so that a change in them does not install everything anew.
COPY pyproject.toml README.md LICENSE constraints.txt ./
RUN /opt/koda/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt .

FROM python:3.13-slim
ENV PATH=/opt/koda/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --system --uid 10001 --no-create-home koda
COPY --from=packages /opt/koda /opt/koda
WORKDIR /app
COPY manage.py ./
COPY koda koda
COPY runs runs
COPY streaming streaming
COPY templates templates
RUN python -m compileall -q .
USER koda
EXPOSE 8000
CMD ["python", "manage.py", "gateway", "--host", "0.0.0.0", "--port", "8000"]
