# One image that serves, trains and evaluates; docs/deployment.md says how it is built and run.
# Left out on purpose: a "syntax" line, which would fetch another image before the build.

ARG BASE_IMAGE=python:3.11-slim
# Where the kernels are compiled: the same Python; g++ is installed unless it is there.
ARG BUILD_IMAGE=${BASE_IMAGE}

# Wheels for a build without (all of) an index: --build-context wheels=FOLDER takes this one's place.
FROM scratch AS wheels

FROM ${BASE_IMAGE} AS dependencies
# Whose PyTorch: the CPU build; …/whl/cu130 brings CUDA 13 in Python packages, so the base stays.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# Optional dependencies of pyproject.toml that the image has as well, with blanks between them.
ARG EXTRAS="otel redis"
# Set to 1: no index is asked, only the wheels.
ARG PIP_NO_INDEX
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY constraints.txt ./
# PyTorch by itself and from its own index alone: PyPI's build of the same version is for CUDA.
# Its headers and its own tests serve those who compile against it, which nothing here does.
RUN --mount=type=bind,from=wheels,target=/wheels \
    grep '^torch==' constraints.txt > torch.txt \
    && python3 -m venv --without-pip /opt/dragoman \
    && pip --python /opt/dragoman/bin/python install --no-compile --no-deps --retries 1 --find-links /wheels \
      --index-url "${TORCH_INDEX}" --requirement torch.txt \
    && torch=$(echo /opt/dragoman/lib/python3*/site-packages/torch) \
    && rm -rf "$torch/include" "$torch/test" "$torch"/bin/test_* "$torch"/bin/*Test "$torch"/bin/protoc*
COPY pyproject.toml ./
# Compiled here, once: a read-only root cannot keep bytecode. By hash, so that times do not matter.
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -c 'import os, tomllib; \
      project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
      groups = [project["optional-dependencies"][name] for name in os.environ["EXTRAS"].split()]; \
      print(*project["dependencies"], *sum(groups, []), sep="\n")' > requirements.txt \
    && pip --python /opt/dragoman/bin/python install --no-compile --find-links /wheels \
      --constraint constraints.txt --requirement requirements.txt \
    && /opt/dragoman/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
      -x /torch/testing/_internal/ /opt/dragoman/lib


FROM ${BUILD_IMAGE} AS package
ARG PIP_NO_INDEX
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# hadolint ignore=DL3008  # the compiler is Debian stable's, and stays in this stage
RUN command -v g++ || { apt-get update \
      && apt-get install --yes --no-install-recommends g++ \
      && rm -rf /var/lib/apt/lists/*; }
# Whoever cloned the sources may have kept them to themselves; the image's user is another.
COPY LICENSE /files/
COPY checkpoints /files/checkpoints
COPY experiments /files/experiments
RUN chmod -R a+rX /files
COPY constraints.txt ./
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m venv --without-pip /opt/dragoman \
    && pip install --find-links /wheels --constraint constraints.txt pybind11 setuptools
COPY pyproject.toml setup.py README.md LICENSE ./
COPY model model
COPY service service
# Apart from the dependencies, so that a change here is a small layer. The package leaves its
# kernels out where they do not compile; an image for x86-64 must have them.
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && pip --python /opt/dragoman/bin/python install --no-compile --no-deps --no-index --root /package dist/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash -s /package /package/opt \
    && { [ "$(uname -m)" != x86_64 ] \
      || ls /package/opt/dragoman/lib/python3*/site-packages/model/native/_kernels.*.so; }


FROM ${BASE_IMAGE}
# Whoever runs it may choose another user; this one owns the folder that training writes to.
RUN groupadd --gid 10001 dragoman \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --no-log-init \
      --shell /usr/sbin/nologin dragoman \
    && install --directory --owner 10001 --group 10001 /app/runs
WORKDIR /app
COPY --from=dependencies /opt/dragoman /opt/dragoman
COPY --from=package /files ./
COPY --from=package /package /

# USER: some libraries ask for the user's name, which a foreign uid has not.
ENV PATH=/opt/dragoman/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    USER=dragoman \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    DRAGOMAN_HOST=0.0.0.0
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
# For serving; `docker run --no-healthcheck` trains.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=1s --retries=3 \
    CMD ["python", "-m", "service.probe"]
ENTRYPOINT ["dragoman"]
CMD ["serve"]

# Last, because they differ from build to build.
ARG VERSION=0.1.0
ARG REVISION=unknown
# What a training's report names as its commit, as there is no git here.
ENV DRAGOMAN_REVISION=${REVISION}
LABEL org.opencontainers.image.title="Dragoman" \
      org.opencontainers.image.description="A self-hosted neural translation server: continuous batching with beam search" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
