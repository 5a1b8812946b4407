"""The way of a LibreTranslate user: Argos packages are put into the folder of a running server."""

import asyncio
import json
import shutil
import zipfile
from pathlib import Path

import httpx
import pytest

from service.models.checkpoints.watch import keep_watching
from support.served_front import Served
from support.tiny_checkpoint import EN_ZH, generated_pairs, write_tiny_checkpoint

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

from support.ctranslate2_models import (  # needs CTranslate2
    random_directory,
    translations_of,
)

METADATA = {"package_version": "1.9", "from_code": "en", "to_code": "zt"}
NAME = "translate-en_zt-1_9"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An unpacked package."""
    root = tmp_path / NAME
    random_directory(root / "model", quantization="int8")
    (root / "model" / "sentencepiece.model").rename(root / "sentencepiece.model")
    (root / "metadata.json").write_text(json.dumps(METADATA))
    return root


def pack(root: Path, file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            archive.write(path, path.relative_to(root.parent))


async def names(served: Served, expected: set[str]) -> None:
    while set(served.front.table.names) != expected:  # noqa: ASYNC110  # there is no event
        await asyncio.sleep(0.02)


async def sentences_that_end(client: httpx.AsyncClient) -> list[str]:
    """Sentences of which the network's translation is not cut off."""
    written = [english for english, _ in generated_pairs(40, seed=31)]
    sentences = [one for one in written if not any(map(str.isdigit, one))]  # lost ones are mended
    values = {"texts": sentences, "source": "en", "target": "zh-Hant"}
    reply = (await client.post("/v1/translate", json=values)).json()
    return [
        sentence
        for sentence, one in zip(sentences, reply["translations"], strict=True)
        if not any(segment["is_truncated"] for segment in one["segments"])
    ]


def test_a_package_in_the_folder_is_served_and_translates_as_ctranslate2_does(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_watching, "__kwdefaults__", {"seconds": 0.05})
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    write_tiny_checkpoint(folder / "a", name="there", pairs=(EN_ZH,))
    pack(root, tmp_path / "whole")
    (tmp_path / "broken").write_bytes((tmp_path / "whole").read_bytes()[:2_000])
    shutil.copy(tmp_path / "whole", tmp_path / "outside")
    with zipfile.ZipFile(tmp_path / "outside", "a") as archive:
        archive.writestr("../../outside.txt", b"outside")

    async def scenario() -> None:
        served = Served(folder, watch=True, compute_type="float32", stopping="first")
        async with served.client() as client:
            await names(served, {"there"})
            for file in ("broken", "outside", "whole"):
                name = NAME if file == "whole" else file
                (tmp_path / file).rename(folder / f"{name}.argosmodel")
            await names(served, {"there", NAME})
            english = next(
                one for one in (await client.get("/languages")).json() if one["code"] == "en"
            )
            assert set(english["targets"]) == {"zh-Hans", "zh-Hant"}
            sentences = await sentences_that_end(client)
            assert len(sentences) > 15
            query = {"q": sentences, "source": "en", "target": "zt"}
            ours = (await client.post("/translate", json=query)).json()["translatedText"]
            assert len(set(ours)) > 10
            assert ours == translations_of(root, sentences)
            models = (await client.get("/v1/models")).json()
            assert [one["name"] for one in models["models"]] == ["there", NAME]
            for fault, name in zip(models["faulty"], ("broken", "outside"), strict=True):
                assert (fault["directory"], fault["is_served"]) == (name, False)
                assert fault["reason"].startswith(f"{name}.argosmodel")
                assert str(tmp_path) not in fault["reason"]
                (folder / f"{name}.argosmodel").unlink()
            assert "leads out of the archive's folder" in models["faulty"][1]["reason"]
            shutil.rmtree(folder / "a")
            await names(served, {NAME})
            assert (await client.get("/v1/models")).json()["faulty"] == []

    asyncio.run(scenario())
    assert list(tmp_path.rglob("outside.txt")) == []
