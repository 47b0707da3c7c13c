# The same image as `make image`, for whoever has Docker, podman or buildah: both let scripts/rootfs.py make the files.
# The last stages start from nothing: no package manager, no compiler, no shell but busybox.
ARG BASE=debian:bookworm-20260824-slim@sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171

FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 python3-pip
WORKDIR /src
COPY scripts/rootfs.py scripts/apt.sh scripts/
COPY requirements/run.txt requirements/
RUN python3 scripts/rootfs.py base /base
COPY requirements/dev.txt requirements/
COPY pyproject.toml README.md LICENSE* ./
COPY services services
COPY operator operator
RUN python3 scripts/rootfs.py weir /base /weir

FROM scratch AS runtime
COPY --from=build /base /
COPY --from=build /weir /
ENV PATH=/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    HOME=/var/lib/weir \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
LABEL org.opencontainers.image.title=weir \
      org.opencontainers.image.licenses=AGPL-3.0-only
WORKDIR /var/lib/weir
USER 10001:10001
EXPOSE 5223 8000
ENTRYPOINT ["weir"]
CMD ["--help"]

# For Tilt: code synced into /tmp/weir comes first, and `weir` is a parent that restarts its child on SIGUSR2.
FROM runtime AS dev
COPY tilt/reload.py /usr/local/bin/weir
ENV PYTHONPATH=/tmp/weir/services:/tmp/weir/operator \
    WEIR_RELOAD=1

FROM runtime
