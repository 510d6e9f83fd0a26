# What stands beside a service: exporter, triage and the `inferdeck` command. Built from the repository's root:
#   docker build -f docker/console.Dockerfile -t inferdeck/console .
# BASE, PIP_NO_INDEX and PIP_FIND_LINKS: see service.Dockerfile.
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS wheel
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY docker/requirements-build.lock /build/
RUN python3 -m venv /opt/build && /opt/build/bin/python -m pip install --quiet --require-hashes -r /build/requirements-build.lock
COPY pyproject.toml hatch_build.py README.md LICENSE /build/src/
COPY inferdeck /build/src/inferdeck
COPY probes /build/src/probes
COPY exporters /build/src/exporters
COPY alerts /build/src/alerts
COPY dashboards /build/src/dashboards
COPY runbooks /build/src/runbooks
COPY service /build/src/service
RUN /opt/build/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel /build/src

FROM ${BASE} AS packages
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY docker/requirements-console.lock /build/
RUN python3 -m venv /opt/inferdeck && /opt/inferdeck/bin/python -m pip install --quiet --require-hashes -r /build/requirements-console.lock
COPY --from=wheel /wheel /wheel
RUN /opt/inferdeck/bin/python -m pip install --quiet --no-deps --no-index /wheel/*.whl && \
    /opt/inferdeck/bin/python -m pip uninstall --quiet --yes pip setuptools

FROM ${BASE} AS console
ENV PATH=/opt/inferdeck/bin:${PATH} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1
# the same user as the service's: rows and their folder are open to their owner alone
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin inferdeck && \
    install -d -o inferdeck -g inferdeck -m 0700 /var/lib/inferdeck /var/lib/inferdeck/rows /var/lib/inferdeck/state
COPY docker/healthy.py /usr/local/lib/inferdeck/healthy.py
COPY --from=packages /opt/inferdeck /opt/inferdeck
ENV INFERDECK_PROFILE=prod \
    INFERDECK_RING_DIR=/var/lib/inferdeck/rows \
    INFERDECK_STATE_DIR=/var/lib/inferdeck/state
ARG COMMIT=unknown
ENV INFERDECK_COMMIT=${COMMIT}
USER 10001:10001
WORKDIR /var/lib/inferdeck
STOPSIGNAL SIGTERM
# exporter by default; triage is `python3 -m runbooks`. What is asked for health differs, so the compose file tells it.
EXPOSE 9464 9465
CMD ["python3", "-m", "exporters"]
