import re
from pathlib import Path

import pytest

from model.errors import ConfigError
from service.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"DRAGOMAN_{name.upper()}", raising=False)


def test_defaults_listen_on_loopback_only() -> None:
    settings = load_settings()
    assert (settings.host, settings.port, settings.device) == ("127.0.0.1", 8000, "auto")
    assert settings.checkpoint == Path("checkpoints")


def test_environment_overrules_defaults_and_flags_overrule_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "9000")
    monkeypatch.setenv("DRAGOMAN_MAX_TEXTS", "7")
    assert load_settings().port == 9000
    settings = load_settings({"port": 9001, "host": None})
    assert (settings.port, settings.host, settings.max_texts) == (9001, "127.0.0.1", 7)


def test_an_empty_variable_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "")
    assert load_settings().port == 8000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "http"),
        ("port", "65536"),
        ("device", "tpu"),
        ("max_beam_size", "17"),
        ("max_texts", "0"),
        ("grace_seconds", "nan"),
        ("reserved_share", "1"),
        ("reserved_share", "-0.1"),
        ("reserved_share", "nan"),
        ("timeout_seconds", "inf"),
        ("hang_seconds", "0.9"),
        ("idle_timeout_seconds", "14"),
        ("idle_timeout_seconds", "nan"),
        ("max_restarts", "-1"),
        ("timeout_seconds", "301"),
        ("log_level", "loud"),
        ("trusted_proxies", "10.0.0.1/8"),
        ("trusted_proxies", "proxy.example"),
        ("cors_origins", "page.example"),
        ("cors_origins", "https://page.example/path"),
        ("cors_origins", "https://*.example"),
        ("requests_per_minute", "0"),
        ("max_header_bytes", "10"),
        ("key_required", "perhaps"),
    ],
)
def test_an_impossible_value_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"DRAGOMAN_{name.upper()}", value)
    with pytest.raises(ConfigError, match=f"(?i){name}"):
        load_settings()


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        (
            {"MAX_TIMEOUT_SECONDS": "30"},
            "DRAGOMAN_TIMEOUT_SECONDS is 60; it must be at most DRAGOMAN_MAX_TIMEOUT_SECONDS (30)",
        ),
        (
            {"MAX_TIMEOUT_SECONDS": "0.5", "TIMEOUT_SECONDS": "0.75", "MAX_BEAM_SIZE": "2"},
            (
                "DRAGOMAN_BEAM_SIZE is 4; it must be at most DRAGOMAN_MAX_BEAM_SIZE (2);"
                " DRAGOMAN_TIMEOUT_SECONDS is 0.75; it must be at most"
                " DRAGOMAN_MAX_TIMEOUT_SECONDS (0.5)"
            ),
        ),
        (
            {"FRONTS": "2", "MEMORY_BUDGET": "1G"},
            (
                "DRAGOMAN_FRONTS is 2 and DRAGOMAN_MEMORY_BUDGET is set; with checkpoints that are"
                " loaded on demand there can be one front"
            ),
        ),
        (
            {"SEGMENT_CACHE": "much"},
            (
                "DRAGOMAN_SEGMENT_CACHE is 'much': 'much' is no number of bytes such as 8G, 512M or"
                " 1000000"
            ),
        ),
    ],
)
def test_a_complaint_names_variables_and_nothing_of_how_they_are_read(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], complaint: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"DRAGOMAN_{name}", value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert str(caught.value) == complaint


def test_all_impossible_values_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "x")
    monkeypatch.setenv("DRAGOMAN_DEVICE", "y")
    with pytest.raises(ConfigError, match=r"DRAGOMAN_PORT is 'x'.*DRAGOMAN_DEVICE is 'y'"):
        load_settings()


def test_every_cost_has_a_maximum_by_default() -> None:
    settings = load_settings()
    for name in Settings.model_fields:
        if name.startswith("max_"):
            assert getattr(settings, name) > 0


def test_the_stopping_rule_is_one_of_the_searchs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().stopping == "exact"
    monkeypatch.setenv("DRAGOMAN_STOPPING", "first")
    assert load_settings().stopping == "first"
    monkeypatch.setenv("DRAGOMAN_STOPPING", "never")
    with pytest.raises(ConfigError, match="DRAGOMAN_STOPPING is 'never'"):
        load_settings()


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
    monkeypatch.setenv("DRAGOMAN_CORS_ORIGINS", "https://a.example,http://localhost:3000")
    settings = load_settings()
    assert [str(network) for network in settings.trusted_proxies] == ["10.0.0.0/8", "::1/128"]
    assert settings.cors_origins == ("https://a.example", "http://localhost:3000")


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "a-secret")
    monkeypatch.setenv("DRAGOMAN_REDIS_URL", "redis://:a-secret@host")
    settings = load_settings()
    assert "a-secret" not in repr(settings)
    monkeypatch.setenv("DRAGOMAN_PORT", "http")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert "a-secret" not in str(caught.value)


def test_every_setting_that_the_security_page_names_exists() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    named = {name.lower() for name in re.findall("DRAGOMAN_([A-Z_]+)", page)}
    assert named <= set(Settings.model_fields)
    assert {"api_keys_file", "redis_url", "trusted_proxies", "max_header_bytes"} <= named


def test_the_settings_page_has_all_that_a_server_reads_in_its_table() -> None:
    docs = Path(__file__).parents[2] / "docs"
    table = (docs / "settings.md").read_text().partition("`dragoman pull`")[0]
    cells = re.findall(r"^\|.*?\|", table, re.MULTILINE)
    told = set(re.findall("DRAGOMAN_([A-Z_]+)", "".join(cells)))
    secured = set(re.findall("DRAGOMAN_([A-Z_]+)", (docs / "security.md").read_text()))
    settings = {name.upper() for name in Settings.model_fields}
    assert told - settings == {"ISA", "CACHE"}
    assert settings <= told | secured


def test_a_variable_that_means_nothing_is_refused_beside_what_is_impossible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEY_FILE", "/keys.toml")
    with pytest.raises(ConfigError, match="DRAGOMAN_API_KEY_FILE is no setting"):
        load_settings()
    monkeypatch.setenv("DRAGOMAN_PORT", "x")
    with pytest.raises(ConfigError, match=r"DRAGOMAN_API_KEY_FILE is no .*; DRAGOMAN_PORT is 'x'"):
        load_settings()


def test_the_address_of_a_kubernetes_service_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "tcp://10.0.0.1:8000")
    assert load_settings().port == 8000
    assert load_settings({"port": 81}).port == 81


def test_what_is_in_effect_is_told_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().effective()["redis_url"] == "unset"
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "a-secret")
    monkeypatch.setenv("DRAGOMAN_REDIS_URL", "redis://:a-secret@host")
    effective = load_settings({"port": 81}).effective()
    assert effective.keys() == Settings.model_fields.keys()
    assert (effective["api_keys"], effective["redis_url"]) == ("set", "set")
    assert (effective["port"], effective["beam_size"]) == (81, 4)
    assert "a-secret" not in str(effective)


def test_preferred_checkpoints_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().preferred == ()
    monkeypatch.setenv("DRAGOMAN_PREFERRED", " small,Helsinki-NLP/opus-mt-en-de ,, large")
    assert load_settings().preferred == ("small", "Helsinki-NLP/opus-mt-en-de", "large")


@pytest.mark.parametrize(
    ("value", "language"), [("en", "en"), ("ZH-hans", "zh-Hans"), ("off", None), ("OFF", None)]
)
def test_a_pivot_is_a_language_or_off(
    monkeypatch: pytest.MonkeyPatch, value: str, language: str | None
) -> None:
    assert load_settings().pivot_language == "en"
    monkeypatch.setenv("DRAGOMAN_PIVOT", value)
    assert load_settings().pivot_language == language


@pytest.mark.parametrize("value", ["e n", "en,fr", "x" * 65, "1"])
def test_a_pivot_that_is_no_language_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("DRAGOMAN_PIVOT", value)
    with pytest.raises(ConfigError, match="DRAGOMAN_PIVOT"):
        load_settings()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1000", 1000),
        ("8G", 8 * 2**30),
        ("512M", 512 * 2**20),
        ("1.5g", 3 * 2**29),
        ("2GiB", 2**31),
        ("64 ", 64),
        ("1T", 2**40),
        ("100KB", 102_400),
    ],
)
def test_a_budget_has_a_suffix_or_none(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: int
) -> None:
    assert load_settings().memory_budget is None
    monkeypatch.setenv("DRAGOMAN_MEMORY_BUDGET", value)
    assert load_settings().memory_budget == expected


@pytest.mark.parametrize("name", ["max_body_bytes", "max_keyless_body_bytes", "max_header_bytes"])
def test_bytes_of_a_request_have_a_suffix_or_none(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for value, expected in (("1M", 2**20), ("64K", 2**16), ("2048", 2048)):
        monkeypatch.setenv(f"DRAGOMAN_{name.upper()}", value)
        assert getattr(load_settings(), name) == expected
    for value in ("1023", "1G", "-1", "much"):
        monkeypatch.setenv(f"DRAGOMAN_{name.upper()}", value)
        with pytest.raises(ConfigError, match=f"DRAGOMAN_{name.upper()} is "):
            load_settings()


@pytest.mark.parametrize("value", ["0", "-1", "8 G B", "G", "1e9", "8X", "9" * 19, "99999999T"])
def test_a_budget_that_is_no_number_of_bytes_is_refused(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("DRAGOMAN_MEMORY_BUDGET", value)
    with pytest.raises(ConfigError, match="DRAGOMAN_MEMORY_BUDGET"):
        load_settings()


@pytest.mark.parametrize(
    ("total", "most", "words"),
    [
        ("10M", "", r"10485760; it must be at least DRAGOMAN_DOCUMENTS_MAX_BYTES \(20971520\)"),
        ("1K", "1025", r"1024; it must be at least DRAGOMAN_DOCUMENTS_MAX_BYTES \(1025\)"),
    ],
)
def test_less_room_for_all_documents_than_one_may_need_is_refused(
    monkeypatch: pytest.MonkeyPatch, total: str, most: str, words: str
) -> None:
    monkeypatch.setenv("DRAGOMAN_DOCUMENTS_TOTAL_BYTES", total)
    monkeypatch.setenv("DRAGOMAN_DOCUMENTS_MAX_BYTES", most)
    with pytest.raises(ConfigError, match=f"DRAGOMAN_DOCUMENTS_TOTAL_BYTES is {words}"):
        load_settings()
    monkeypatch.setenv("DRAGOMAN_DOCUMENTS", "false")
    assert load_settings().documents is False, "then there are none that could have no room"


def test_documents_may_have_room_for_just_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DOCUMENTS_TOTAL_BYTES", "64M")
    monkeypatch.setenv("DRAGOMAN_DOCUMENTS_MAX_BYTES", "64M")
    assert load_settings().documents_total_bytes == 2**26


@pytest.mark.parametrize("value", ["0", "-1", "257", "two", "1.5", "", " "])
def test_replicas_are_a_number_or_auto(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DRAGOMAN_REPLICAS", "auto")
    assert load_settings().replicas == "auto"
    monkeypatch.setenv("DRAGOMAN_REPLICAS", "2")
    assert load_settings().replicas == 2
    with pytest.raises(
        ConfigError, match=rf"DRAGOMAN_REPLICAS is '{value}': .*neither auto nor a number from 1"
    ):
        load_settings({"replicas": value})
