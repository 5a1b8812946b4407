"""Downloads from a real server that misbehaves: bytes are counted, and nothing wrong is kept."""

import gzip
import hashlib
from pathlib import Path

import pytest

from model.errors import RegistryError, UnreachableError
from model.exchange.registry.listing import Checksum, Content, RemoteFile
from support.registry_mirror import Fault, Mirror, Waits, git_sha1, quick_downloader

DATA = bytes(range(256)) * 4096  # 1 MiB
PATH = "/models/weights.bin"


def _sha256(data: bytes) -> Checksum:
    return Checksum(kind="sha256", digest=hashlib.sha256(data).hexdigest())


def _file(mirror: Mirror, **more: object) -> RemoteFile:
    values: dict[str, object] = {
        "path": "weights.bin",
        "url": mirror.url + PATH,
        "stored": Content(size=len(DATA), checksum=_sha256(DATA)),
    }
    return RemoteFile(**(values | more))  # type: ignore[arg-type]


@pytest.fixture
def target(mirror: Mirror, tmp_path: Path) -> Path:
    mirror.files[PATH] = DATA
    return tmp_path / "weights.bin"


def _left(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_a_file_arrives_whole_and_alone(mirror: Mirror, target: Path, waits: Waits) -> None:
    told: list[int] = []
    quick_downloader(waits, advance=told.append).fetch(_file(mirror), target)
    assert target.read_bytes() == DATA
    assert _left(target) == ["weights.bin"]
    assert sum(told) == len(DATA)
    assert waits.waited == []


def test_what_is_there_and_right_is_not_asked_for(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    target.write_bytes(DATA)
    quick_downloader(waits).fetch(_file(mirror), target)
    assert mirror.asked == []


def test_what_is_there_and_wrong_is_replaced(mirror: Mirror, target: Path, waits: Waits) -> None:
    target.write_bytes(DATA[:-1] + b"x")
    quick_downloader(waits).fetch(_file(mirror), target)
    assert target.read_bytes() == DATA


def test_a_connection_that_breaks_is_resumed_where_it_broke(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.faults[PATH] = [Fault(cut_after=300_000), Fault(cut_after=200_000)]
    quick_downloader(waits).fetch(_file(mirror), target)
    assert target.read_bytes() == DATA
    assert mirror.bodies_of(PATH) == [300_000, 200_000, len(DATA) - 500_000]
    tag = f'"{hashlib.sha256(DATA).hexdigest()}"'
    ranges = [(one.headers.get("range"), one.headers.get("if-range")) for one in mirror.asked]
    assert ranges == [(None, None), ("bytes=300000-", tag), ("bytes=500000-", tag)]
    assert waits.waited == [1.0, 1.0]  # both gained something


def test_another_process_goes_on_where_the_first_one_was_left(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.faults[PATH] = [Fault(cut_after=400_000)] + [Fault(status=503)] * 4
    with pytest.raises(UnreachableError, match="503"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert not target.exists()
    mirror.asked.clear()
    quick_downloader(waits).fetch(_file(mirror), target)
    assert mirror.bodies_of(PATH) == [len(DATA) - 400_000]
    assert target.read_bytes() == DATA
    assert _left(target) == ["weights.bin"]


def test_a_process_that_was_stopped_after_the_last_byte_asks_for_nothing(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    target.with_name(".weights.bin.partial").write_bytes(DATA)
    quick_downloader(waits).fetch(_file(mirror), target)
    assert mirror.asked == []
    assert target.read_bytes() == DATA


def test_a_server_that_ignores_ranges_starts_anew(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    told: list[int] = []
    mirror.faults[PATH] = [Fault(cut_after=400_000), Fault(ignores_range=True)]
    quick_downloader(waits, advance=told.append).fetch(_file(mirror), target)
    assert target.read_bytes() == DATA
    assert mirror.bodies_of(PATH) == [400_000, len(DATA)]
    assert sum(told) == len(DATA)


def test_a_server_that_ignores_ranges_and_always_breaks_is_given_up(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.always[PATH] = Fault(cut_after=400_000, ignores_range=True)
    with pytest.raises(UnreachableError, match="broke off after 400000 of 1048576 bytes"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert mirror.bodies_of(PATH) == [400_000] * 5
    assert waits.waited == [1.0, 2.0, 4.0, 8.0]


def test_a_file_that_changed_between_two_parts_is_begun_anew(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    """Without a checksum only the validator tells."""
    file = _file(mirror, stored=Content())
    mirror.faults[PATH] = [Fault(body=b"old" * 100_000, cut_after=1_000)]
    quick_downloader(waits).fetch(file, target)
    assert target.read_bytes() == DATA
    assert mirror.bodies_of(PATH) == [1_000, len(DATA)]


def test_without_validator_and_checksum_nothing_is_resumed(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.always[PATH] = Fault(headers={"ETag": 'W/"weak"'})
    mirror.faults[PATH] = [Fault(cut_after=1_000, headers={"ETag": 'W/"weak"'})]
    quick_downloader(waits).fetch(_file(mirror, stored=Content(size=len(DATA))), target)
    assert target.read_bytes() == DATA
    assert [one.headers.get("range") for one in mirror.asked] == [None, None]


def test_a_partial_file_of_something_else_is_begun_anew(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    """Its validator is lost, so the server cannot tell; the checksum does."""
    target.with_name(".weights.bin.partial").write_bytes(b"other" * 1_000)
    quick_downloader(waits).fetch(_file(mirror), target)
    assert target.read_bytes() == DATA
    assert mirror.bodies_of(PATH) == [len(DATA) - 5_000, len(DATA)]


def test_a_wrong_checksum_leaves_nothing_behind(mirror: Mirror, target: Path, waits: Waits) -> None:
    mirror.files[PATH] = DATA[:-1] + b"!"
    with pytest.raises(RegistryError, match=r"weights\.bin: has the sha256 checksum [0-9a-f]{64};"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert _left(target) == []
    assert len(mirror.asked) == 1


def test_a_checksum_of_gits_kind_is_compared(mirror: Mirror, target: Path, waits: Waits) -> None:
    good = Content(size=len(DATA), checksum=Checksum(kind="git-sha1", digest=git_sha1(DATA)))
    quick_downloader(waits).fetch(_file(mirror, stored=good), target)
    target.unlink()
    mirror.files[PATH] = b"!" + DATA[1:]
    with pytest.raises(RegistryError, match="git-sha1"):
        quick_downloader(waits).fetch(_file(mirror, stored=good), target)
    assert _left(target) == []


@pytest.mark.parametrize("size", [len(DATA) - 1, len(DATA) + 1])
def test_another_length_than_the_listed_one_is_refused_before_a_byte_is_taken(
    mirror: Mirror, target: Path, waits: Waits, size: int
) -> None:
    mirror.files[PATH] = (DATA + b"x")[:size]
    with pytest.raises(RegistryError, match=f"has {size} bytes; (at most )?{len(DATA)} are listed"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert _left(target) == []


def test_an_endless_body_is_cut_at_the_listed_size(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.always[PATH] = Fault(is_endless=True)
    with pytest.raises(RegistryError, match="sends more than 1048576 bytes"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert _left(target) == []


def test_an_endless_body_of_no_listed_size_is_cut_at_the_bound(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.always[PATH] = Fault(is_endless=True)
    with pytest.raises(RegistryError, match="sends more than 5000 bytes"):
        quick_downloader(waits).fetch(_file(mirror, stored=Content(), max_bytes=5_000), target)
    assert _left(target) == []


def test_a_body_without_a_length_that_ends_too_early_is_tried_again(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.faults[PATH] = [Fault(cut_after=70_000, has_no_length=True)]
    quick_downloader(waits).fetch(_file(mirror), target)
    assert mirror.bodies_of(PATH) == [70_000, len(DATA) - 70_000]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_told_at_once(mirror: Mirror, target: Path, waits: Waits, status: int) -> None:
    mirror.always[PATH] = Fault(status=status)
    with pytest.raises(RegistryError, match=f"status {status}"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert len(mirror.asked) == 1
    assert waits.waited == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_refusal_that_passes_is_waited_for(
    mirror: Mirror, target: Path, waits: Waits, status: int
) -> None:
    mirror.faults[PATH] = [Fault(status=status)] * 3
    quick_downloader(waits).fetch(_file(mirror), target)
    assert waits.waited == [1.0, 2.0, 4.0]


def test_retry_after_is_honoured(mirror: Mirror, target: Path, waits: Waits) -> None:
    mirror.faults[PATH] = [Fault(status=429, headers={"Retry-After": "17"})]
    quick_downloader(waits).fetch(_file(mirror), target)
    assert waits.waited == [17.0]


def test_a_retry_after_that_nobody_waits_for_is_an_error_at_once(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.faults[PATH] = [Fault(status=429, headers={"Retry-After": "86400"})]
    with pytest.raises(UnreachableError, match="too many requests"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert waits.waited == []


def test_a_server_that_sends_almost_nothing_counts_as_broken(mirror: Mirror, target: Path) -> None:
    """Every look at the clock is a minute later; most of these minutes bring enough."""
    slow = Waits(seconds_a_look=70.0)
    small = b"x" * 100
    mirror.files[PATH] = small
    file = _file(mirror, stored=Content(size=100, checksum=_sha256(small)))
    with pytest.raises(UnreachableError, match="sent 100 bytes in 70 seconds"):
        quick_downloader(slow).fetch(file, target)


def test_a_part_that_nobody_asked_for_is_refused(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    body = DATA[1_000:]
    headers = {"Content-Range": f"bytes 1000-{len(DATA) - 1}/{len(DATA)}"}
    mirror.always[PATH] = Fault(status=206, headers=headers, body=body)
    with pytest.raises(RegistryError, match="another part of the file"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert _left(target) == []


def test_an_encoding_that_nobody_asked_for_is_refused(
    mirror: Mirror, target: Path, waits: Waits
) -> None:
    mirror.always[PATH] = Fault(headers={"Content-Encoding": "br"})
    with pytest.raises(RegistryError, match="encoded as br"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert _left(target) == []


def test_a_full_disk_leaves_nothing_behind(
    mirror: Mirror, target: Path, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("model.exchange.registry.download.flush", full)
    with pytest.raises(OSError, match="No space"):
        quick_downloader(waits).fetch(_file(mirror), target)
    assert _left(target) == []


class TestPacked:
    PACKED = gzip.compress(DATA, mtime=0)

    def _file(self, mirror: Mirror, **more: object) -> RemoteFile:
        unpacked = Content(size=len(DATA), checksum=_sha256(DATA))
        return _file(mirror, **({"stored": Content(), "unpacked": unpacked} | more))

    def test_it_is_unpacked_and_verified(self, mirror: Mirror, target: Path, waits: Waits) -> None:
        mirror.files[PATH] = self.PACKED
        quick_downloader(waits).fetch(self._file(mirror), target)
        assert target.read_bytes() == DATA
        assert _left(target) == ["weights.bin"]

    def test_it_is_resumed(self, mirror: Mirror, target: Path, waits: Waits) -> None:
        mirror.files[PATH] = self.PACKED
        mirror.faults[PATH] = [Fault(cut_after=1_000)]
        quick_downloader(waits).fetch(self._file(mirror), target)
        assert mirror.bodies_of(PATH) == [1_000, len(self.PACKED) - 1_000]
        assert target.read_bytes() == DATA

    def test_a_partial_file_of_something_else_is_begun_anew(
        self, mirror: Mirror, target: Path, waits: Waits
    ) -> None:
        """That it is of another file is only seen when it is unpacked."""
        mirror.files[PATH] = self.PACKED
        other = gzip.compress(DATA[::-1], mtime=0)[:1_000]
        target.with_name(".weights.bin.partial").write_bytes(other)
        told: list[int] = []
        quick_downloader(waits, advance=told.append).fetch(self._file(mirror), target)
        assert target.read_bytes() == DATA
        assert _left(target) == ["weights.bin"]
        assert mirror.bodies_of(PATH) == [len(self.PACKED) - 1_000, len(self.PACKED)]
        assert sum(told) == len(self.PACKED)

    def test_a_server_may_say_that_it_is_encoded(
        self, mirror: Mirror, target: Path, waits: Waits
    ) -> None:
        mirror.files[PATH] = self.PACKED
        mirror.always[PATH] = Fault(headers={"Content-Encoding": "gzip"})
        quick_downloader(waits).fetch(self._file(mirror), target)
        assert target.read_bytes() == DATA

    def test_a_server_may_have_unpacked_it(
        self, mirror: Mirror, target: Path, waits: Waits
    ) -> None:
        quick_downloader(waits).fetch(self._file(mirror), target)
        assert target.read_bytes() == DATA

    def test_what_is_there_unpacked_is_not_asked_for(
        self, mirror: Mirror, target: Path, waits: Waits
    ) -> None:
        target.write_bytes(DATA)
        quick_downloader(waits).fetch(self._file(mirror), target)
        assert mirror.asked == []

    def test_the_record_may_be_of_the_packed_bytes(
        self, mirror: Mirror, target: Path, waits: Waits
    ) -> None:
        mirror.files[PATH] = self.PACKED
        stored = Content(size=len(self.PACKED), checksum=_sha256(self.PACKED))
        file = self._file(mirror, stored=stored, unpacked=Content())
        quick_downloader(waits).fetch(file, target)
        assert target.read_bytes() == DATA
        target.unlink()
        mirror.files[PATH] = gzip.compress(DATA, mtime=1)
        with pytest.raises(RegistryError, match="sha256"):
            quick_downloader(waits).fetch(file, target)
        assert _left(target) == []

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            (gzip.compress(DATA + b"x"), "unpacks to more than 1048576 bytes"),
            (gzip.compress(b"\0" * 200_000_000, 1), "unpacks to more than 1048576 bytes"),
            (gzip.compress(DATA[:-1]), "unpacked has 1048575 bytes"),
            (gzip.compress(DATA[:-1] + b"!"), "unpacked has the sha256 checksum"),
            (PACKED[:-20], "is no whole gzip file"),
            (PACKED[:500] + b"\xff" * 500 + PACKED[1_000:], "is no whole gzip file|unpacked has"),
            (DATA[:-1] + b"!", "has the sha256 checksum"),
            (b"", "has 0 bytes"),
        ],
    )
    def test_other_bytes_leave_nothing_behind(
        self, mirror: Mirror, target: Path, waits: Waits, body: bytes, problem: str
    ) -> None:
        mirror.files[PATH] = body
        with pytest.raises(RegistryError, match=problem):
            quick_downloader(waits).fetch(self._file(mirror), target)
        assert _left(target) == []
