"""The same server on a GPU.

In float32: in bfloat16 a sentence may come out otherwise beside others, where scores nearly tie.
"""

from pathlib import Path

import pytest

from support.running_server import running_server

pytestmark = pytest.mark.gpu


def test_auto_takes_the_gpu_says_so_and_translates(served_checkpoint: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    environment = {"DRAGOMAN_COMPUTE_TYPE": "float32"}
    with running_server(served_checkpoint, log, "--device", "auto", **environment) as server:
        assert server.announcement.rstrip().endswith(" on cuda")
        body = {"q": ["The cat sees the river."] * 64, "source": "en", "target": "zh"}
        with server.client() as client:
            texts = client.post("/translate", json=body).json()["translatedText"]
        assert len(texts) == 64
        assert len(set(texts)) == 1
        assert any(
            name.startswith("dragoman_info{") and "device=cuda" in name for name in server.metrics()
        )
