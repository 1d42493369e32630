# minikafka from source. Two images:
#   docker build --target full -t minikafka .         Debian with bash, Kafka's tool names and start scripts; what compose uses
#   docker build --target slim -t minikafka:slim .    the static binary and nothing else
# Both take KAFKA_* variables as Apache's image does; with none they are one node that is broker and controller, Kafka at 9092.
ARG RUST_IMAGE=rust:1.95-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

# The manifests alone: this stage runs at every edit, but what it gives changes only with a manifest.
FROM ${RUST_IMAGE} AS manifests
WORKDIR /src
COPY . .
RUN docker/skeleton /skeleton

FROM ${RUST_IMAGE} AS build
WORKDIR /src
# The dependencies: a layer that stays until a manifest or the lock file changes.
COPY --from=manifests /skeleton .
RUN docker/build-static --dependencies
COPY . .
RUN touch .touch-sources && docker/build-static /minikafka
RUN docker/pack /minikafka /slim /full

FROM scratch AS slim
COPY --from=build /slim /
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="minikafka" \
      org.opencontainers.image.description="A mini Kafka cluster that speaks Kafka's protocol and says why" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 1000:0
VOLUME /var/lib/kafka/data
EXPOSE 9092
HEALTHCHECK --interval=2s --timeout=5s --start-period=120s --retries=5 CMD ["/usr/bin/minikafka", "health"]
ENTRYPOINT ["/usr/bin/minikafka"]
CMD ["container"]

FROM ${BASE_IMAGE} AS full
COPY --from=build /full /
RUN echo 'kafka:x:1000:0:minikafka:/var/lib/kafka:/bin/bash' >>/etc/passwd
ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="minikafka" \
      org.opencontainers.image.description="A mini Kafka cluster that speaks Kafka's protocol and says why" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/kafka/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
USER 1000:0
WORKDIR /opt/kafka
VOLUME /var/lib/kafka/data
EXPOSE 9092
HEALTHCHECK --interval=2s --timeout=5s --start-period=120s --retries=5 CMD ["/usr/bin/minikafka", "health"]
# No entry point, as Apache's image has none: whoever gives a command gets that command.
CMD ["/etc/kafka/docker/run"]
