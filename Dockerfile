# drivefeed with the exact packages of requirements/demo.lock. Bull Board has bull-board/Dockerfile.
FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/drivefeed
COPY requirements/demo.lock requirements/
RUN /opt/drivefeed/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/demo.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/drivefeed/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/drivefeed drivefeed \
    && install -d -m 0700 -o drivefeed -g drivefeed /var/lib/drivefeed/data
COPY --from=build /opt/drivefeed /opt/drivefeed
ENV PATH=/opt/drivefeed/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DRIVEFEED_DATA_DIR=/var/lib/drivefeed/data \
    DRIVEFEED_LOG_JSON=true
USER drivefeed
WORKDIR /var/lib/drivefeed
VOLUME /var/lib/drivefeed/data
# The daemon ends in order on SIGTERM; give it longer than its shutdown_seconds.
STOPSIGNAL SIGTERM
# Whether it answers and everything of it turns; a part that is down is no reason to restart it.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["drivefeed", "health"]
ENTRYPOINT ["drivefeed"]
CMD ["up"]
