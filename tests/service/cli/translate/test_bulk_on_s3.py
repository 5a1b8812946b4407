"""Bulk jobs from and to a real server of Amazon's protocol for stores, of this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.cli.main import main
from support.bulk_jobs import sentences, write_json_lines
from support.tiny_checkpoint import EN_ZH, write_tiny_checkpoint

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
moto_server = pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of botocore

TEXTS = sentences(23)
BUCKET = "words"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_checkpoint(tmp_path_factory.mktemp("s3") / "tiny", pairs=(EN_ZH,))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """An empty bucket; commands find the server as they would another one: by the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem(skip_instance_cache=True)
    store.mkdir(BUCKET)
    yield store
    store.rm(BUCKET, recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


def _arguments(source: str, output: str, checkpoint: Path, *more: str) -> list[str]:
    return [
        "translate", source, output, "--checkpoint", str(checkpoint), "--beam-size", "2",
        "--block-rows", "4", "--columns", "text", *more,
    ]  # fmt: skip


def _names(store: s3fs.S3FileSystem, folder: str) -> set[str]:
    return {str(path).removeprefix(f"{folder}/") for path in store.find(folder)}


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_table_of_a_bucket_gets_there_what_a_folder_gets(
    checkpoint: Path, store: s3fs.S3FileSystem, tmp_path: Path, name: str
) -> None:
    local = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"text": TEXTS, "n": range(len(TEXTS))}), local, row_group_size=9)
    else:
        write_json_lines(local, [{"text": text} for text in TEXTS])
    store.put_file(str(local), f"{BUCKET}/in/{name}")
    assert main(_arguments(str(local), str(tmp_path / "out"), checkpoint)) == 0
    there = _arguments(f"s3://{BUCKET}/in", f"s3://{BUCKET}/out", checkpoint)
    assert main(there) == 0
    own = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("part-*")}
    assert own == {
        path.rpartition("/")[2]: store.cat_file(path) for path in store.glob(f"{BUCKET}/out/part-*")
    }
    assert "_SUCCESS" in _names(store, f"{BUCKET}/out")
    assert not [one for one in _names(store, f"{BUCKET}/out") if "writing/" in one]


def test_a_block_that_lost_its_record_is_done_again_and_nothing_else(
    checkpoint: Path,
    store: s3fs.S3FileSystem,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    local = tmp_path / "a.jsonl"
    write_json_lines(local, [{"text": text} for text in TEXTS])
    store.put_file(str(local), f"{BUCKET}/a.jsonl")
    there = _arguments(f"s3://{BUCKET}/a.jsonl", f"s3://{BUCKET}/out", checkpoint)
    assert main(there) == 0
    whole = {path: store.cat_file(path) for path in store.glob(f"{BUCKET}/out/part-*")}
    store.rm_file(f"{BUCKET}/out/_dragoman/done/000001.json")
    store.pipe_file(sorted(whole)[2], b"half")  # a block half written
    capfd.readouterr()
    assert main(there) == 0
    assert "4 of 6 blocks are finished already" in capfd.readouterr().err
    assert {path: store.cat_file(path) for path in whole} == whole


def test_an_input_that_is_not_there_and_one_that_changed_are_one_clear_error(
    checkpoint: Path, store: s3fs.S3FileSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missing = f"s3://{BUCKET}/missing.jsonl"
    assert main(_arguments(missing, f"s3://{BUCKET}/out", checkpoint)) != 0
    assert missing in capfd.readouterr().err
    local = tmp_path / "a.jsonl"
    for texts in (TEXTS, TEXTS[:9]):
        write_json_lines(local, [{"text": text} for text in texts])
        store.put_file(str(local), f"{BUCKET}/a.jsonl")
        status = main(_arguments(f"s3://{BUCKET}/a.jsonl", f"s3://{BUCKET}/out", checkpoint))
        assert (status == 0) == (texts is TEXTS)
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert f"s3://{BUCKET}/a.jsonl" in error
