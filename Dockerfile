# One image that serves, trains and evaluates; docs/deployment.md says how it is built and run.
# Left out on purpose: a "syntax" line, which would fetch another image before the build.

# By digest, as a tag moves; `make base-image` asks the registry for the tag's present one.
ARG BASE_IMAGE=python:3.11-slim@sha256:be1575ed968de893bd54f4c56315ff7c4736ce522c1bca08fd521731aafc0d76
# Where the kernels are compiled: the same Python, with its headers.
ARG BUILD_IMAGE=${BASE_IMAGE}

# Wheels for a build without (all of) an index: --build-context wheels=FOLDER takes this one's place.
FROM scratch AS wheels


# What is installed, cut to what each layer is made of: a layer is made anew when its own lines change.
FROM ${BASE_IMAGE} AS pins
# Other EXTRAS need constraints.txt, which pins those of all extras.
ARG CONSTRAINTS=constraints-runtime.txt
# Optional dependencies of pyproject.toml that the image has as well, with blanks between them.
ARG EXTRAS="otel redis"
WORKDIR /pins
COPY ${CONSTRAINTS} constraints.txt
COPY pyproject.toml ./
RUN grep '^torch==' constraints.txt > torch.txt \
    && python3 -c 'import os, tomllib; \
      project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
      groups = [project["optional-dependencies"][name] for name in os.environ["EXTRAS"].split()]; \
      print(*project["dependencies"], *sum(groups, []), sep="\n")' > requirements.txt


FROM ${BASE_IMAGE} AS torch
# Whose PyTorch: the CPU build; …/whl/cu130 brings CUDA 13 in Python packages, so the base stays.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
# Set to 1: no index is asked, only the wheels.
ARG PIP_NO_INDEX
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY --from=pins /pins/torch.txt ./
# PyTorch by itself and from its own index alone: PyPI's build of the same version is for CUDA. What it
# needs of CUDA is in this layer, too. Headers, CMake files, its own tests and their libraries serve
# those who compile against it, which nothing here does; torch.testing is imported by torch itself.
# Compiled here, once: a read-only root cannot keep bytecode. By hash, so that times do not matter.
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m venv --without-pip /opt/dragoman \
    && pip --python /opt/dragoman/bin/python install --no-compile --no-deps --retries 1 --find-links /wheels \
      --index-url "${TORCH_INDEX}" --requirement torch.txt \
    && packages=$(echo /opt/dragoman/lib/python3*/site-packages) \
    && sed -n 's/^Requires-Dist: *\(\(nvidia\|cuda\|triton\).*\)/\1/p' "$packages"/torch-*.dist-info/METADATA > cuda.txt \
    && { [ ! -s cuda.txt ] || pip --python /opt/dragoman/bin/python install --no-compile --find-links /wheels \
      --requirement cuda.txt; } \
    && rm -rf "$packages/torch/include" "$packages/torch/share/cmake" "$packages/torch/test" \
      "$packages"/torch/lib/lib*test*.so "$packages"/torch/lib/libaoti_custom_ops.so \
      "$packages"/torch/lib/libbackend_with_compiler.so \
    && find "$packages/torch/bin" -mindepth 1 -not -name torch_shm_manager -delete \
    && /opt/dragoman/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash \
      -x /torch/testing/_internal/ /opt/dragoman/lib


FROM torch AS dependencies
ARG PIP_NO_INDEX
COPY --from=pins /pins/constraints.txt /pins/requirements.txt ./
# Apart from PyTorch, which is ten times as large. Whatever came without a pin ends the build.
RUN --mount=type=bind,from=wheels,target=/wheels \
    pip --python /opt/dragoman/bin/python install --no-compile --root /added --find-links /wheels \
      --constraint constraints.txt --requirement requirements.txt \
    && packages=$(echo /added/opt/dragoman/lib/python3*/site-packages) \
    && python3 -c 'import sys; from importlib.metadata import distributions; \
      spelled = lambda name: name.lower().replace("_", "-").replace(".", "-"); \
      pins = {spelled(line.partition("==")[0]) for line in open("constraints.txt")}; \
      found = {spelled(each.name) for each in distributions(path=sys.argv[1:])}; \
      sys.exit(f"no pin of {sorted(found - pins)}; other EXTRAS need CONSTRAINTS=constraints.txt" if found - pins else 0)' "$packages" \
    && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash -s /added /added/opt


FROM ${BUILD_IMAGE} AS compiled
ARG PIP_NO_INDEX
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY constraints-runtime.txt ./
# The compiler is a package as well. So this is the wheel of `make wheel`, for every Linux and not for this one.
RUN --mount=type=bind,from=wheels,target=/wheels \
    pip install --find-links /wheels --constraint constraints-runtime.txt \
      auditwheel pybind11 pyelftools setuptools wheel ziglang
COPY pyproject.toml setup.py README.md LICENSE NOTICE ./
COPY .ci/build-wheel .ci/build-wheel
COPY model model
COPY service service
RUN mkdir /dist && .ci/build-wheel /dist


# The package's wheel by itself: `docker build --target wheel --output dist .` takes it out, and
# --build-context wheel=FOLDER puts another one in its place.
FROM scratch AS wheel
COPY --from=compiled /dist /


FROM ${BASE_IMAGE} AS package
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# Whoever cloned the sources may have kept them to themselves; the image's user is another.
COPY LICENSE NOTICE /files/
COPY LICENSES /files/LICENSES
COPY checkpoints /files/checkpoints
COPY experiments /files/experiments
RUN chmod -R a+rX /files
# Apart from the dependencies, so that a change here is a small layer. The package leaves its
# kernels out where they do not compile; an image must have those that most processors use.
RUN --mount=type=bind,from=wheel,target=/wheel \
    python3 -m venv --without-pip /opt/dragoman \
    && pip --python /opt/dragoman/bin/python install --no-compile --no-deps --no-index --root /package /wheel/dragoman-*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash -s /package /package/opt \
    && case $(uname -m) in \
      x86_64) ls /package/opt/dragoman/lib/python3*/site-packages/model/native/_kernels_avx2.*.so ;; \
      aarch64) ls /package/opt/dragoman/lib/python3*/site-packages/model/native/_kernels_neon.*.so ;; \
    esac


FROM ${BASE_IMAGE}
# Whoever runs it may choose another user; this one owns the folder that training writes to. What
# installs packages has nothing to do in what serves; ours are in /opt/dragoman.
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/local/lib/python3*/ensurepip \
      /usr/local/bin/pip* /usr/local/bin/wheel* \
    && groupadd --gid 10001 dragoman \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --no-log-init \
      --shell /usr/sbin/nologin dragoman \
    && install --directory --owner 10001 --group 10001 /app/runs
WORKDIR /app
COPY --from=torch /opt/dragoman /opt/dragoman
COPY --from=dependencies /added /
COPY --from=package /files ./
COPY --from=package /package /

# USER: some libraries ask for the user's name, which a foreign uid has not. PACKED_BYTES: /tmp is small, or memory.
ENV PATH=/opt/dragoman/bin:${PATH} \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp \
    USER=dragoman \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    DRAGOMAN_HOST=0.0.0.0 \
    DRAGOMAN_CHECKPOINT=/app/checkpoints \
    DRAGOMAN_PACKED_BYTES=0
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
# For serving; `docker run --no-healthcheck` trains.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --start-interval=1s --retries=3 \
    CMD ["python", "-P", "-m", "service.probe"]
ENTRYPOINT ["dragoman"]
CMD ["serve"]

# Last, because they differ from build to build.
ARG VERSION=0.2.0
ARG REVISION=unknown
# What a training's report names as its commit, as there is no git here.
ENV DRAGOMAN_REVISION=${REVISION}
LABEL org.opencontainers.image.title="Dragoman" \
      org.opencontainers.image.description="A self-hosted neural translation server: continuous batching with beam search" \
      org.opencontainers.image.licenses="Apache-2.0 AND CC-BY-SA-4.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
