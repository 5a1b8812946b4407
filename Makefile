# Two commands do everything on a fresh machine: `make serve` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Where pip looks for PyTorch's CPU build besides its usual places; for CUDA name another index.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
TORCH_VERSION := $(shell sed -n 's/^torch==//p' constraints.txt)
# Instruction sets that kernels are compiled for: this processor's, or `all` that the compiler knows.
KERNELS ?= here
# A flag, where make's own command line gives it: some shells export a HOST that is none of ours.
given = $(if $(filter command,$(origin $(1))),$(2) $($(1)))
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install serve test check lint types imports test-gpu test-documents test-monitoring test-parity test-browser test-registry test-ray test-s3 test-contract test-asan test-tsan test-levels test-same-bits test-replicas test-search bench-served bench-peers bench-report bench-gpu fuzz soak audit sbom image-sbom base-image wheel image test-image manifests clean

help: ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

install: $(INSTALLED) ## Make .venv with everything in it

$(INSTALLED): pyproject.toml constraints.txt setup.py $(wildcard model/native/src/* model/native/src/simd/*)
	@echo 'Setting up $(VENV): PyTorch, the dependencies, the compiled kernels. A few minutes, once.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt pybind11 setuptools
	$(BIN)/pip install --quiet --no-deps --retries 1 --extra-index-url $(TORCH_INDEX) 'torch==$(TORCH_VERSION)'
	rm -f model/native/_kernels*.so
	DRAGOMAN_KERNELS=$(KERNELS) $(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev,bench,train]'
	@touch $@
	@echo '$(VENV) is ready: $(BIN)/dragoman'

serve: install ## Serve the bundled checkpoints; HOST=… and PORT=… say where
	@exec $(BIN)/dragoman serve $(call given,HOST,--host) $(call given,PORT,--port)

test: install ## Run the tests
	$(BIN)/pytest -n auto

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports

check: lint types imports test ## Run ruff, mypy --strict, import-linter and the tests

# Only the files that have such tests are read, and nothing is installed: on a borrowed machine there
# may be neither a network nor every package. GPU_PYTHON is the interpreter.
GPU_PYTHON ?= $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON))

test-gpu: ## Run the tests that need a CUDA device, with what is installed; docs/gpu-first-run.md
	$(GPU_PYTHON) -m pytest -m gpu -p no:cacheprovider -W default $$(grep -rl 'mark\.gpu' tests --include='test_*.py')

test-monitoring: install ## Ask a live Prometheus every expression of dashboard and alerts
	.ci/monitoring

test-documents: install ## 10,000 generated pages, thousands of texts beside the formats' own libraries, and files that LibreOffice makes and opens again
	NUM_FRAGMENTS=5000 $(BIN)/pytest tests/model/documents -m "office or not office"

test-parity: install ## Compare with every family's reference on 500 sentences and 10,000 lines; DRAGOMAN_DATA names real text
	$(BIN)/pytest -m parity -s
	PYTHONPATH=tests $(BIN)/python -m benchmarks.parity $(PARITY_FLAGS)
	PYTHONPATH=tests $(BIN)/python -m benchmarks.parity.tokenizers

test-browser: install build/axe/node_modules/axe-core/axe.min.js ## Use the web page with a real Chromium (CHROMIUM names it); screenshots in build/screenshots
	$(BIN)/pip install --quiet --constraint constraints.txt 'playwright'
	$(BIN)/pytest -m browser tests/browser

# What finds barriers on a page: a tool of the tests, not a part of anything.
build/axe/node_modules/axe-core/axe.min.js:
	npm install --silent --no-save --prefix build/axe axe-core@4.11.0

test-replicas: install ## Lose, hang and reload replicas and fronts under load, and compare them with one
	$(BIN)/pytest -m "replicas or not replicas" tests/service/engine/client/pool tests/service/models/deployments/test_replicas.py tests/service/test_placement.py tests/model/system/test_shares.py tests/benchmarks/test_replicas.py tests/benchmarks/test_capacity.py tests/benchmarks/test_scaling.py tests/benchmarks/soak/test_predicted.py tests/e2e/test_replicas.py tests/e2e/test_fronts.py tests/service/fronts tests/contract/test_v1_stream_tokens.py

test-search: install ## Compare every search on every backend with the plain one, on five times as many sentences as usual
	CROWD=80 $(BIN)/pytest -n auto tests/model/decode

test-registry: install ## Pull models of every registry from local mirrors with faults
	$(BIN)/pytest tests/model/exchange/registry tests/service/cli/models/test_pull.py tests/service/cli/models/test_pull_real_models.py

# pandas is pinned here and not in constraints.txt: Ray Data imports it, and nothing of ours does.
test-ray: install ## Run bulk jobs and pipelines of Ray Data on a real cluster of this machine, and kill its workers and drivers
	$(BIN)/pip install --quiet --constraint constraints.txt 'ray[data]' 'pandas==3.1.1'
	$(BIN)/pytest -m ray tests/service/cli/translate/test_bulk_on_ray.py tests/model/offline/bulk/test_ray_data_on_ray.py

# Pinned here and not in constraints.txt: tools of one test, whose own dependencies are many.
test-s3: install ## Run bulk jobs from and to a real server of the S3 protocol on this machine; fetches some 60 MB
	$(BIN)/pip install --quiet --constraint constraints.txt pyarrow 's3fs==2026.9.0' 'moto[s3,server]==5.2.5' 'boto3==1.43.117' 'botocore==1.43.117'
	$(BIN)/pytest tests/service/cli/translate/test_bulk_on_s3.py

test-contract: install ## Run published clients of both APIs, unmodified, against a live server; fetches some
	PYTHON=$(PYTHON) .ci/clients
	DRAGOMAN_CLIENTS=build/clients $(BIN)/pytest tests/clients

test-asan: install ## Run the kernels' tests under AddressSanitizer, then build them again without
	BIN=$(BIN) .ci/test-asan

test-tsan: install ## Run the kernels' tests under ThreadSanitizer, then build them again without
	BIN=$(BIN) .ci/test-tsan

test-levels: install ## Run the kernels' tests by every further instruction set of this machine
	BIN=$(BIN) .ci/levels

test-same-bits: install ## Compare kernels for NEON (by qemu), AVX-VNNI and AMX (emulated) with those for AVX2; start them on old processors
	BIN=$(BIN) .ci/same-bits

bench-served: install ## Measure a service that it starts, at 1, 8 and 32 clients
	$(BIN)/python -m benchmarks.served

bench-peers: install ## Compare with CTranslate2 and Hugging Face; ISA=avx2 holds both to it; BENCH_FLAGS=--quick to try it
	$(BIN)/python -m benchmarks.peers $(if $(ISA),--isa $(ISA)) $(BENCH_FLAGS)

bench-report: install ## Write docs/benchmarks.md and the README's table from the latest comparison
	$(BIN)/python -m benchmarks.peers.report

bench-gpu: install ## Measure everything on a CUDA device in nine minutes; DRAGOMAN_DATA for BLEU
	$(BIN)/python -m benchmarks.gpu $(if $(DRAGOMAN_DATA),--data "$(DRAGOMAN_DATA)") $(BENCH_FLAGS)

fuzz: install ## Send 10,000 generated requests to a service that it starts
	PYTHONPATH=tests $(BIN)/python -m benchmarks.fuzz

soak: install ## Prove what docs/reliability.md promises, about 50 minutes; SOAK_FLAGS=--quick to try it
	$(BIN)/python -m benchmarks.soak $(SOAK_FLAGS)

# The tools that look at the environment are not in it.
AUDIT_VENV ?= .venv-audit

$(AUDIT_VENV)/.installed: constraints.txt
	$(PYTHON) -m venv $(AUDIT_VENV)
	$(AUDIT_VENV)/bin/pip install --quiet --constraint constraints.txt pip-audit cyclonedx-bom
	@touch $@

audit: install $(AUDIT_VENV)/.installed ## Look every pinned package up for vulnerabilities; a skipped one fails
	$(BIN)/python -m tools.audit constraints.txt $(AUDIT_VENV)/bin/pip-audit

sbom: install $(AUDIT_VENV)/.installed ## Write build/sbom.cdx.json, the bill of materials (CycloneDX)
	$(BIN)/python -m tools.sbom build/sbom.cdx.json $(AUDIT_VENV)/bin/cyclonedx-py

IMAGE ?= dragoman:cpu

image-sbom: install ## Write build/image.cdx.json, the bill of materials of IMAGE; needs Docker
	$(BIN)/python -m tools.image_sbom build/image.cdx.json -- docker run --rm --interactive --network=none --entrypoint python $(IMAGE) -

base-image: install ## Pin the present digest of the image's base; asks its registry
	$(BIN)/python -m tools.base_image Dockerfile -- docker buildx imagetools inspect

wheel: install ## Build a wheel with the kernels in dist/, and translate with it without a compiler; ARCH=aarch64 crosses
	PYTHON=$(PYTHON) BIN=$(BIN) ARCH=$(ARCH) .ci/wheel

image: ## Build IMAGE (dragoman:cpu); IMAGE_FLAGS are docker build's, docs/deployment.md has some
	docker build --build-arg REVISION=$$(git rev-parse HEAD) $(IMAGE_FLAGS) --tag $(IMAGE) .

test-image: install ## Build the image, again with other pins, run it, docker compose and a rollout; needs Docker
	IMAGE_LAYERS=1 .ci/containers

manifests: install ## Write what is generated in k8s/, then build and validate all of it
	k8s/overlays/monitoring/generate
	.ci/manifests

clean: ## Remove the environment, the compiled kernels and all caches
	rm -rf $(VENV) $(AUDIT_VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f model/native/_kernels*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
