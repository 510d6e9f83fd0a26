# The example service: code, locked packages and a model in one image. Built from the repository's root:
#   docker build -f docker/service.Dockerfile -t inferdeck/service .
# BASE is any image with Python 3.11 and its venv module. PIP_NO_INDEX and PIP_FIND_LINKS let a build without network
# take its packages from a folder that is mounted into the build (docker/README.md).
ARG BASE=python:3.11.14-slim-bookworm

FROM ${BASE} AS wheel
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
# for the compiled core of the recorder; without a compiler the wheel is whole and records interpreted
RUN command -v cc > /dev/null || (apt-get update -qq && apt-get install -qq -y --no-install-recommends gcc libc6-dev) || \
    echo "no compiler: the recorder will run interpreted"
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
COPY docker/requirements-service.lock /build/
RUN python3 -m venv /opt/inferdeck && /opt/inferdeck/bin/python -m pip install --quiet --require-hashes -r /build/requirements-service.lock
COPY --from=wheel /wheel /wheel
# pip has done its work: what serves requests shall not be able to install
RUN /opt/inferdeck/bin/python -m pip install --quiet --no-deps --no-index /wheel/*.whl && \
    /opt/inferdeck/bin/python -m pip uninstall --quiet --yes pip setuptools

# A model that was trained in this checkout (`inferdeck train`) is taken as it is; else one is trained here.
FROM packages AS model
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
COPY docker/requirements-train.lock docker/model.sh /build/
# the bracket makes the folder optional: a pattern that matches nothing is no error beside a file that is there
COPY docker/model.sh build/mode[l] /given/
RUN sh /build/model.sh /given /model

FROM ${BASE} AS service
# read-only at run time: nothing writes bytecode, and the packages bring theirs
ENV PATH=/opt/inferdeck/bin:${PATH} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1
# a folder that a named volume is mounted over gives it its owner and mode
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin inferdeck && \
    install -d -o inferdeck -g inferdeck -m 0700 /var/lib/inferdeck /var/lib/inferdeck/rows /var/lib/inferdeck/state
COPY docker/healthy.py /usr/local/lib/inferdeck/healthy.py
COPY --from=packages /opt/inferdeck /opt/inferdeck
COPY --from=model --chown=inferdeck:inferdeck /model /var/lib/inferdeck/model
ENV INFERDECK_PROFILE=prod \
    INFERDECK_SERVICE_HOST=0.0.0.0 \
    INFERDECK_SERVICE_ADMIN_HOST=0.0.0.0 \
    INFERDECK_SERVICE_MODEL_DIR=/var/lib/inferdeck/model \
    INFERDECK_RING_DIR=/var/lib/inferdeck/rows \
    INFERDECK_STATE_DIR=/var/lib/inferdeck/state
ARG COMMIT=unknown
ENV INFERDECK_COMMIT=${COMMIT}
USER 10001:10001
WORKDIR /var/lib/inferdeck
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python3", "-S", "/usr/local/lib/inferdeck/healthy.py", "http://127.0.0.1:8081/healthz/ready"]
CMD ["python3", "-m", "service"]
