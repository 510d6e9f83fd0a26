# Triton with the model of the service's image as its repository; nothing is fetched at start. Built after that image:
#   docker build -f docker/triton.Dockerfile -t inferdeck/triton .
# The graphs run in NVIDIA's onnxruntime backend, where config.pbtxt says: on the CPU, as shipped.
ARG SERVICE=inferdeck/service:0.1.0
ARG TRITON=nvcr.io/nvidia/tritonserver:26.10-py3

FROM ${SERVICE} AS repository
USER 0:0
RUN python3 -c "from pathlib import Path; from service.triton.repository import lay_out; \
lay_out(Path('/var/lib/inferdeck/model'), Path('/models'))" && chmod -R a+rX /models

FROM ${TRITON} AS triton
# the name by which NVIDIA's image runs without root
COPY --from=repository --chown=1000:1000 /models /models
USER 1000:1000
EXPOSE 8000 8001 8002
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=120s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /v2/health/ready HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q ' 200 ' <&3"]
CMD ["tritonserver", "--model-repository=/models", "--exit-on-error=false"]
