"""Settings of the server: `DRAGOMAN_…` in the environment, overruled by flags.

Owns names, defaults and safe maxima of every knob. Does not own what a single request may ask
for within them (`service.api`), the network's own limits (the checkpoint's manifest), nor which
other variables there are (`service.environment`).
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from model.arithmetic import ComputeType
from model.config import StoppingRule
from model.errors import ConfigError, InputError
from model.system.cores import MAX_THREADS
from model.text.languages.tags import canonical_tag
from service.bounds import (
    MAX_BEAM_SIZE,
    MAX_FRONTS,
    MAX_PER_MINUTE,
    MAX_REPLICAS,
    MIN_IDLE_TIMEOUT_SECONDS,
)
from service.checkpoint_folder import default_checkpoints, listed_items
from service.environment import ENVIRONMENT_PREFIX, is_service_link, unknown_variables
from service.networks import Network, parse_network

DEFAULT_PORT = 8000
NO_PIVOT = "off"

Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0.0, le=86_400.0, allow_inf_nan=False)]
Rate = Annotated[int, Field(ge=1, le=MAX_PER_MINUTE)]
BeamSize = Annotated[int, Field(ge=1, le=MAX_BEAM_SIZE)]
DetectionMode = Literal["auto", "accurate", "compact", "off"]

_ORIGIN = re.compile(
    r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?"
)
_BYTES = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,6})?)([KMGT]?)(?:i?B)?", re.IGNORECASE)


def _parse_networks(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(parse_network(item) for item in listed_items(value))


def _parse_origins(value: object) -> object:
    if not isinstance(value, str):
        return value
    origins = listed_items(value)
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} is no origin such as https://example.org, nor *")
    return origins


def _parse_names(value: object) -> object:
    return listed_items(value) if isinstance(value, str) else value


def _parse_bytes(value: object) -> object:
    if not isinstance(value, str):
        return value
    number = _BYTES.fullmatch(value.strip())
    if number is None:
        raise ValueError(f"{value!r} is no number of bytes such as 8G, 512M or 1000000")
    return int(float(number[1]) * 1024 ** " KMGT".index((number[2] or " ").upper()))


def _parse_replicas(value: object) -> object:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        value = int(value)
    if value != "auto" and not (type(value) is int and 1 <= value <= MAX_REPLICAS):
        raise ValueError(f"neither auto nor a number from 1 to {MAX_REPLICAS}")
    return value


def _parse_pivot(value: object) -> object:
    if not isinstance(value, str) or value.lower() == NO_PIVOT:
        return NO_PIVOT if isinstance(value, str) else value
    try:
        return canonical_tag(value)
    except InputError as error:
        raise ValueError(f"{error}, nor {NO_PIVOT}") from None


def _without_service_link(value: object) -> object:
    """The default port where Kubernetes has put the address of a Service called `dragoman`."""
    is_link = isinstance(value, str) and is_service_link("DRAGOMAN_PORT", value)
    return DEFAULT_PORT if is_link else value


class Settings(BaseSettings):
    """Settings of a server at its start.

    Attributes:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        checkpoint: Directory of a checkpoint, or of checkpoints that are served together;
            relative to the working directory. By default
            `service.checkpoint_folder.default_checkpoints`. Read again by a reload.
        watch: Whether that path is looked at every few seconds, and read again when it has changed.
        preferred: Names of checkpoints that go before others which translate the same languages,
            the first one first, separated by commas.
        pivot: Language by way of which texts are translated where no checkpoint goes straight;
            "off" refuses them instead.
        memory_budget: Bytes that weights and engines may take (8G, 512M). Checkpoints that do not
            fit are loaded by their first request, each in an engine of its own, and the least
            recently used leave for others; None loads all at the start.
        pinned: Names of checkpoints that are loaded at the start and never leave.
        load_seconds: Time that a request waits for a checkpoint to be loaded.
        detection: How the languages of texts are told: with statistics in memory of all languages
            that share a script, with a tenth of them ("compact"), or not at all; "auto" has all
            statistics of up to `service.models.requests.detection.MAX_ACCURATE_LANGUAGES`.
        segment_cache: Bytes (64M) of translated segments that are kept for whoever asks for the
            same again; 0 keeps none.
        suggestions: File that `POST /suggest` appends to; None refuses suggestions.
        device: Where the network runs; "auto" takes CUDA when it is there, and asking for
            one that is missing fails at start.
        compute_type: Arithmetic of the network; "auto" is bfloat16 on a GPU, int8 on a CPU that
            has the kernels, float32 elsewhere, and asking for one that is missing fails at start.
        shortlist: Whether sentences choose from the checkpoints' lexical shortlists, on a CPU; a
            checkpoint that has none is then not served.
        packed_bytes: Bytes (8G, 512M) of files in which packed int8 weights are kept and shared by
            all engines of this machine; 0 keeps none.
        replicas: Engines that translate side by side, each with all checkpoints that are loaded at
            the start; "auto" is one a GPU, or one a core beside those of the fronts.
        fronts: Processes that answer requests for translation on the one port, and share the
            engines; what they have in common is counted by the process that starts them.
        fill_rows: Beam rows up to which one replica is filled before the next gets any; None is
            `service.placement.default_fill_rows`.
        num_threads: CPU threads of the engine; None leaves a core to each front and to the
            owner of several.
        max_rows: Beam rows that run at once.
        max_slots: Segments that run at once.
        admit_token_budget: Source tokens encoded between two decoding steps, at most; measured
            times may allow less.
        reserved_share: Of the rows and slots, those that bulk leaves to interactive segments; of
            what may be pending and in flight, what each class leaves to the other, and each
            checkpoint to the others.
        max_pending_segments: Segments queued or running; more gets a 429.
        max_requests: Translation requests in flight; more gets a 429.
        max_body_bytes: Bytes (1M) of one request's body.
        max_keyless_body_bytes: Likewise, where a key is required and may only come with the body.
        max_texts: Texts of one request.
        max_text_characters: Characters of one text, tags left out.
        max_request_characters: Characters of all texts of one request.
        beam_size: Beam of a request that names none.
        max_beam_size: Widest beam a request may ask for.
        length_penalty: Exponent of a request that names none.
        stopping: When a search ends; see `model.config.SearchConfig`.
        timeout_seconds: Deadline of a request that names none.
        max_timeout_seconds: Latest deadline a request may ask for.
        body_timeout_seconds: Time for a request's body to arrive.
        grace_seconds: Time for accepted work to finish after SIGTERM.
        start_timeout_seconds: Time for the engine to load and to warm up.
        hang_seconds: Time after which an engine that is not heard of, or that has work and does
            not get on, is killed and replaced.
        max_restarts: Times a lost engine is replaced within the window; then the server is not
            alive any more.
        restart_window_seconds: The window.
        exit_when_lost: Whether the process then leaves with 1, for what restarts it and looks at
            no probe.
        log_level: Least severe log line that is written.
        traces: Where traces go; "otlp" sends them as the OTEL_… variables say.
        api_keys_file: Keys, one a line; see `service.access.keys`.
        api_keys_dir: A directory of such files, those whose names end in `.toml`. Files are read
            again when they change.
        api_keys: Further keys, written like such a file.
        key_required: Whether a translation needs a key; None: where there are keys. When it is
            true and there is none, the server does not start.
        metrics_key_required: Whether /metrics needs one.
        requests_per_minute: Of a key that names no other limit, and of an address without a
            key; None is no limit.
        characters_per_minute: Likewise.
        redis_url: Where several servers share these counts; None keeps them in the process.
        trusted_proxies: Networks whose X-Forwarded-For and -Proto are believed, with commas.
        cors_origins: Origins whose pages may call the server, separated by commas, or "*".
        page: Whether there is a web page at `/`.
        max_header_bytes: Bytes (64K) of one request's line, where LibreTranslate's clients may put
            the text, and its headers.
        header_timeout_seconds: Time for them to arrive.
        idle_timeout_seconds: Time after which a connection that waits for its next request is
            closed; longer than the proxy before the server keeps one.
        max_connections: Connections open at once; a further one takes the place of one that
            waits for a request, or gets a 503.
        documents: Whether documents are translated.
        documents_folder: Where they are kept meanwhile; None makes a temporary folder, which goes
            with the server, so that nothing is taken up after a restart.
        documents_max_bytes: Bytes (20M) of one file.
        documents_max_characters: Characters of the texts of one document.
        documents_per_caller: Documents of one caller that are waited for, translated or kept.
        documents_total_bytes: Bytes of all files that are kept; those of one file at least.
        documents_at_once: Documents that are translated at once; further ones wait.
        documents_keep_seconds: How long a result can be fetched, and a refusal be read.
        glossaries: File of the glossaries that callers keep; None takes one in the folder of
            documents, and where that has no name either, they go with the server.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="forbid", env_ignore_empty=True
    )

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535), BeforeValidator(_without_service_link)] = (
        DEFAULT_PORT
    )
    checkpoint: Path = Field(default_factory=default_checkpoints)
    watch: bool = False
    preferred: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parse_names)] = ()
    pivot: Annotated[str, BeforeValidator(_parse_pivot)] = "en"
    memory_budget: Annotated[int, Field(ge=1, le=2**60), BeforeValidator(_parse_bytes)] | None = (
        None
    )
    pinned: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parse_names)] = ()
    load_seconds: Seconds = 30.0
    detection: DetectionMode = "auto"
    segment_cache: Annotated[int, Field(ge=0, le=2**40), BeforeValidator(_parse_bytes)] = 0
    suggestions: Path | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compute_type: ComputeType = "auto"
    shortlist: bool = False
    packed_bytes: Annotated[int, Field(ge=0, le=2**60), BeforeValidator(_parse_bytes)] = 8 * 2**30
    num_threads: Annotated[int, Field(ge=1, le=MAX_THREADS)] | None = None
    replicas: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1, le=MAX_REPLICAS)],
        BeforeValidator(_parse_replicas),
    ] = 1
    fill_rows: Annotated[int, Field(ge=0, le=65_536)] | None = None
    fronts: Annotated[int, Field(ge=1, le=MAX_FRONTS)] = 1

    max_rows: Annotated[int, Field(ge=MAX_BEAM_SIZE, le=65_536)] = 128
    max_slots: Annotated[int, Field(ge=1, le=65_536)] = 64
    admit_token_budget: Count = 1024
    reserved_share: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.25
    max_pending_segments: Count = 1536
    max_requests: Count = 1024

    max_body_bytes: Annotated[int, Field(ge=1024, le=2**26), BeforeValidator(_parse_bytes)] = 2**20
    max_keyless_body_bytes: Annotated[
        int, Field(ge=1024, le=2**26), BeforeValidator(_parse_bytes)
    ] = 64 * 2**10
    max_texts: Count = 128
    max_text_characters: Count = 20_000
    max_request_characters: Count = 100_000

    beam_size: BeamSize = 4
    max_beam_size: BeamSize = MAX_BEAM_SIZE
    length_penalty: Annotated[float, Field(ge=-10.0, le=10.0)] = 1.0
    stopping: StoppingRule = "exact"
    timeout_seconds: Seconds = 60.0
    max_timeout_seconds: Seconds = 300.0
    body_timeout_seconds: Seconds = 10.0
    grace_seconds: Seconds = 30.0
    start_timeout_seconds: Seconds = 120.0
    hang_seconds: Annotated[float, Field(ge=1.0, le=86_400.0, allow_inf_nan=False)] = 30.0
    max_restarts: Annotated[int, Field(ge=0, le=1_000_000)] = 5
    restart_window_seconds: Seconds = 300.0
    exit_when_lost: bool = False
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    traces: Literal["off", "otlp"] = "off"

    api_keys_file: Path | None = None
    api_keys_dir: Path | None = None
    api_keys: SecretStr = SecretStr("")
    key_required: bool | None = None
    metrics_key_required: bool = False
    requests_per_minute: Rate | None = None
    characters_per_minute: Rate | None = None
    redis_url: SecretStr | None = None
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode, BeforeValidator(_parse_networks)] = ()
    cors_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parse_origins)] = ()
    page: bool = True
    max_header_bytes: Annotated[int, Field(ge=1024, le=2**20), BeforeValidator(_parse_bytes)] = (
        64 * 2**10
    )
    header_timeout_seconds: Seconds = 10.0
    idle_timeout_seconds: Annotated[
        float, Field(ge=MIN_IDLE_TIMEOUT_SECONDS, le=86_400.0, allow_inf_nan=False)
    ] = 75.0
    max_connections: Count = 1000

    documents: bool = True
    documents_folder: Path | None = None
    documents_max_bytes: Annotated[int, Field(ge=1, le=2**26), BeforeValidator(_parse_bytes)] = (
        20 * 2**20
    )
    documents_max_characters: Annotated[int, Field(ge=1, le=100_000_000)] = 1_000_000
    documents_per_caller: Count = 20
    documents_total_bytes: Annotated[int, Field(ge=1, le=2**50), BeforeValidator(_parse_bytes)] = (
        128 * 2**20
    )
    documents_at_once: Annotated[int, Field(ge=1, le=64)] = 2
    documents_keep_seconds: Annotated[float, Field(ge=1.0, le=31_536_000.0)] = 3600.0
    glossaries: Path | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if complaints := [*_contradictions(self)]:
            raise ValueError("; ".join(complaints))
        return self

    @property
    def pivot_language(self) -> str | None:
        """The tag of the pivot language; None without one."""
        return None if self.pivot == NO_PIVOT else self.pivot

    def effective(self) -> dict[str, object]:
        """Every setting with its value, for the log; of a secret only whether it is set."""
        values: dict[str, object] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if SecretStr in (field.annotation, *get_args(field.annotation)):
                values[name] = "set" if value and value.get_secret_value() else "unset"
            else:
                values[name] = value
        return values


def load_settings(flags: Mapping[str, object] | None = None) -> Settings:
    """Read the environment; a flag that is not None overrules it.

    Raises:
        ConfigError: A value is impossible, or a variable means nothing; the message names each.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    complaints = unknown_variables(os.environ, Settings.model_fields)
    try:
        settings = Settings(**given)  # type: ignore[arg-type]  # pydantic checks each of them
    except ValidationError as error:
        raise ConfigError("; ".join([*complaints, *_complaints(error)])) from error
    if complaints:
        raise ConfigError("; ".join(complaints))
    return settings


def _contradictions(settings: Settings) -> Iterator[str]:
    """What is wrong with values that are possible by themselves, and not together."""
    for name in ("BEAM_SIZE", "TIMEOUT_SECONDS"):
        value = getattr(settings, name.lower())
        limit = getattr(settings, f"max_{name.lower()}")
        if value > limit:
            yield (
                f"DRAGOMAN_{name} is {value:g}; it must be at most DRAGOMAN_MAX_{name} ({limit:g})"
            )
    total, most = settings.documents_total_bytes, settings.documents_max_bytes
    if settings.documents and total < most:
        yield (
            f"DRAGOMAN_DOCUMENTS_TOTAL_BYTES is {total}; it must be at least"
            f" DRAGOMAN_DOCUMENTS_MAX_BYTES ({most})"
        )
    if settings.fronts > 1 and settings.memory_budget is not None:
        yield (
            f"DRAGOMAN_FRONTS is {settings.fronts} and DRAGOMAN_MEMORY_BUDGET is set; with"
            " checkpoints that are loaded on demand there can be one front"
        )


def _complaints(error: ValidationError) -> list[str]:
    complaints = []
    for item in error.errors(include_url=False):
        name = "".join(str(part) for part in item["loc"][:1])
        subject = f"{ENVIRONMENT_PREFIX}{name.upper()} is {item['input']!r}: " if name else ""
        # What our own validators raise; pydantic would put the kind of the exception before it.
        reason = item.get("ctx", {}).get("error") or item["msg"]
        complaints.append(f"{subject}{reason}")
    return complaints
