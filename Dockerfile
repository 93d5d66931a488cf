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
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import json, os, socket; door = json.load(open(os.environ['DRIVEFEED_DATA_DIR'] + '/daemon.json')); s = socket.socket(socket.AF_UNIX); s.connect(door['socket']); s.sendall(b'GET /healthz HTTP/1.0\\r\\n\\r\\n'); assert b' 200 ' in s.recv(64)"]
ENTRYPOINT ["drivefeed"]
CMD ["up"]
