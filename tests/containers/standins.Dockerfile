# Stand-ins for images that cannot be fetched here: the same programs at the places where the published images have
# them, under the same users, on the base of a Debian with Python. Busybox gives the wget that their health checks run.
ARG BASE
FROM ${BASE} AS prometheus
RUN install -d -o 65534 -g 65534 /prometheus /etc/prometheus
COPY prometheus /bin/prometheus
USER 65534:65534
WORKDIR /prometheus
ENTRYPOINT ["/bin/prometheus"]

FROM ${BASE} AS alertmanager
RUN install -d -o 65534 -g 65534 /alertmanager
COPY alertmanager /opt/alertmanager
# Debian's build serves its pages from a folder; descriptor 9 stands for it (inferdeck/tool_install.py tells why)
RUN printf '#!/bin/sh\nexec 9< /opt/alertmanager/assets\nexec /opt/alertmanager/alertmanager "$@"\n' > /bin/alertmanager && \
    chmod 0755 /bin/alertmanager
USER 65534:65534
WORKDIR /alertmanager
ENTRYPOINT ["/bin/alertmanager"]

FROM ${BASE} AS jaeger
COPY jaeger /cmd/jaeger/jaeger-linux
USER 10001:10001
ENTRYPOINT ["/cmd/jaeger/jaeger-linux"]
