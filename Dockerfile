# The same images as `scripts/image.py` makes, for whoever has Docker, podman or buildah: all let scripts/rootfs.py make the
# files. `--target pipeline` builds the second image: Spark for `weir pipeline`.
# The last stages start from nothing: no package manager, no compiler, no shell but busybox (and bash, for Spark).
ARG BASE=debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${BASE} AS build-base
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-pip
WORKDIR /src
COPY scripts/rootfs.py scripts/apt.sh scripts/
COPY requirements/run.txt requirements/
RUN python3 scripts/rootfs.py base /base

FROM build-base AS build-pipeline
RUN apt-get install -y --no-install-recommends maven
COPY scripts/rootfs_pipeline.py scripts/
COPY requirements/dev.txt requirements/pipeline.txt requirements/
COPY services/weir/__init__.py services/weir/
COPY services/weir/pipeline/__init__.py services/weir/pipeline/errors.py services/weir/pipeline/jars.py \
     services/weir/pipeline/s3.py services/weir/pipeline/
RUN python3 scripts/rootfs_pipeline.py /base /pipeline

FROM build-base AS build
COPY requirements/dev.txt requirements/
COPY pyproject.toml README.md LICENSE* ./
COPY services services
COPY operator operator
RUN python3 scripts/rootfs.py weir /base /weir

FROM scratch AS system
COPY --from=build-base /base /
ENV PATH=/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    HOME=/var/lib/weir \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
LABEL org.opencontainers.image.title=weir \
      org.opencontainers.image.licenses=AGPL-3.0-only
WORKDIR /var/lib/weir
USER 10001:10001
ENTRYPOINT ["weir"]
CMD ["--help"]

FROM system AS pipeline
COPY --from=build-pipeline /pipeline /
COPY --from=build /weir /
ENV JAVA_HOME=/usr/lib/jvm/java-17 \
    WEIR_PIPELINE_JARS=/usr/local/share/weir/jars
LABEL org.opencontainers.image.title=weir-pipeline

FROM system AS runtime
COPY --from=build /weir /
EXPOSE 5223 8000

# For Tilt: code synced into /tmp/weir comes first, and `weir` is a parent that restarts its child on SIGUSR2.
FROM runtime AS dev
COPY tilt/reload.py /usr/local/bin/weir
ENV PYTHONPATH=/tmp/weir/services:/tmp/weir/operator \
    WEIR_RELOAD=1

FROM runtime
