"""A tiny set of results files as the comparison with other engines writes them."""

from typing import Any

DRAGOMAN, FLOAT, RIVAL, REFERENCE = (
    "Dragoman int8",
    "Dragoman float32",
    "CTranslate2",
    "Hugging Face float32",
)
MIB = 2**20


def header(benchmark: str) -> dict[str, Any]:
    return {
        "benchmark": f"peers-{benchmark}",
        "started": "2026-01-02T03:04:05+00:00",
        "machine": {
            "processor": "Test CPU",
            "num_cores": 2,
            "vector_units": ["avx2"],
            "versions": {"torch": "1", "ctranslate2": "2", "transformers": "3"},
            "commit": "abc",
        },
        "file": f"peers-{benchmark}-20260102-030405.json",
    }


def rival(speed: float, *, bleu: float | None = None) -> dict[str, Any]:
    return {
        "num_sentences": 1,
        "tokens_per_second": speed,
        "median_seconds": 1.0,
        "num_tokens": int(speed),
        "rounds": [{"seconds": 1.0, "num_tokens": int(speed), "idle_cpu_seconds": 0.01}],
        "settings": {"max_rows": 128},
        "tuning": [],
        "bleu": None if bleu is None else {"score": bleu, "signature": "s"},
    }


def point(
    workload: str, num_sentences: int, beam_size: int, speeds: dict[str, float], **bleu: float
) -> dict[str, Any]:
    return {
        "workload": workload,
        "vocabulary": None if workload == "text" else 58101,
        "num_sentences": num_sentences,
        "beam_size": beam_size,
        "rivals": {
            name: rival(value, bleu=bleu.get(name.split()[-1])) for name, value in speeds.items()
        },
    }


def offline() -> dict[str, Any]:
    return header("offline") | {
        "points": [
            point("equal", 1, 4, {DRAGOMAN: 210.0, FLOAT: 90.0, RIVAL: 100.0, REFERENCE: 20.0}),
            point("equal", 32, 4, {DRAGOMAN: 1500.0, FLOAT: 300.0, RIVAL: 1000.0}),
            point(
                "text", 10, 4, {DRAGOMAN: 500.0, FLOAT: 80.0, RIVAL: 250.0}, int8=20.1, float32=20
            ),
            point("file", 2000, 4, {DRAGOMAN: 1700.0, FLOAT: 300.0, RIVAL: 1000.0}),
            point("file", 2000, 1, {DRAGOMAN: 3000.0, FLOAT: 500.0, RIVAL: 1500.0}),
        ]
    }


def level(name: str, num_clients: int, speed: float, p99: float) -> dict[str, Any]:
    return {
        "rival": name,
        "num_clients": num_clients,
        "rate_per_second": speed,
        "share_of_capacity": 0.6,
        "sentences_per_second": speed,
        "latency_seconds": {"p50": p99 / 2, "p95": p99 * 0.9, "p99": p99},
        "num_latencies": 100,
        "num_errors": 0,
    }


def served() -> dict[str, Any]:
    levels = [
        level(DRAGOMAN, 1, 20.0, 0.05),
        level(RIVAL, 1, 10.0, 0.1),
        level(DRAGOMAN, 32, 190.0, 0.2),
        level(RIVAL, 32, 100.0, 0.3),
    ]
    return header("served") | {
        "checkpoints": [
            {
                "checkpoint": "bundled",
                "settings": {DRAGOMAN: {"num_threads": 1}, RIVAL: {"intra_threads": 1}},
                "closed": levels,
                "open": levels[:2],
                "short_beside_long": levels[2:],
            }
        ]
    }


def memory() -> dict[str, Any]:
    def sizes(empty: int, loaded: int, peak: int) -> dict[str, Any]:
        return {
            "empty_bytes": empty * MIB,
            "loaded_bytes": loaded * MIB,
            "peak_bytes": peak * MIB,
            "loaded_growth_bytes": (loaded - empty) * MIB,
            "peak_growth_bytes": (peak - empty) * MIB,
            "rounds": [],
        }

    rivals = {
        DRAGOMAN: sizes(200, 290, 380),
        FLOAT: sizes(200, 600, 700),
        RIVAL: sizes(40, 140, 190),
        REFERENCE: sizes(300, 700, 900),
    }
    return header("memory") | {"vocabulary": 58101, "num_sentences": 32, "rivals": rivals}


def families() -> dict[str, Any]:
    marian = "Marian int8"
    speeds = {DRAGOMAN: 3000.0, RIVAL: 1000.0, marian: 750.0}
    found = {
        "family": "student",
        "points": [point("equal", 1, 4, speeds), point("file", 2000, 1, speeds)],
        "memory": memory()["rivals"] | {marian: memory()["rivals"][RIVAL]},
    }
    del found["memory"][FLOAT], found["memory"][REFERENCE]
    return header("families") | {"families": [found]}


def all_results() -> dict[str, dict[str, Any]]:
    return {"offline": offline(), "served": served(), "memory": memory()}
