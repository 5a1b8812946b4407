"""Where replicas run, on machines that are not this one."""

import ctypes.util
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import ConfigError
from model.system.cores import usable_cores
from model.system.gpu_count import num_gpus
from model.system.shares import Core
from service.cores import cores_beside_engines, engine_threads
from service.placement import Machine, Placement, one_engine, place_replicas


def machine(
    num_cores: int, *, usable: int | None = None, gpus: int = 0, visible: str | None = None
) -> Machine:
    return Machine(
        cores=tuple(Core(node=0, processors=(number,)) for number in range(num_cores)),
        num_usable=num_cores if usable is None else usable,
        num_gpus=lambda: gpus,
        environment={} if visible is None else {"CUDA_VISIBLE_DEVICES": visible},
    )


def test_one_replica_has_what_an_engine_always_had():
    def asked() -> int:
        raise AssertionError("nobody asks for devices")

    alone = Machine(cores=(), num_usable=1, num_gpus=asked, environment={})
    placed = place_replicas(1, device="auto", num_threads=None, machine=alone)
    assert placed == (Placement(num_threads=1),)
    here = place_replicas(1, device="auto", num_threads=None)
    assert here == (one_engine(None),) == (Placement(num_threads=engine_threads(usable_cores())),)


def test_replicas_have_a_share_of_the_cores_each():
    placed = place_replicas(2, device="auto", num_threads=None, machine=machine(5))
    assert placed == (
        Placement(num_threads=2, processors=(0, 1)),
        Placement(num_threads=2, processors=(2, 3)),
    )


def test_of_a_quota_they_have_time_and_no_cores():
    placed = place_replicas(2, device="cpu", num_threads=None, machine=machine(64, usable=5))
    assert placed == (Placement(num_threads=2), Placement(num_threads=2))


def test_threads_that_are_asked_for_are_held_to_a_share_that_has_as_many_cores():
    four = machine(4)
    narrow = place_replicas(2, device="cpu", num_threads=1, machine=four)
    assert [one.processors for one in narrow] == [(0, 1), (2,)]
    wide = place_replicas(2, device="cpu", num_threads=2, machine=four)
    assert [(one.num_threads, one.processors) for one in wide] == [(2, (0, 1)), (2, None)]


@pytest.mark.parametrize(
    ("num_cores", "usable", "expected"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (64, 64, 63), (64, 8, 7)]
)
def test_auto_is_one_for_every_core_but_the_fronts(num_cores, usable, expected):
    placed = place_replicas(
        "auto", device="cpu", num_threads=None, machine=machine(num_cores, usable=usable)
    )
    assert len(placed) == expected


@pytest.mark.parametrize(("num_fronts", "beside"), [(1, 1), (2, 3), (4, 5)])
def test_several_fronts_have_a_core_each_and_so_has_their_owner(num_fronts, beside):
    assert cores_beside_engines(num_fronts) == beside


@pytest.mark.parametrize("usable", [16, None])
@pytest.mark.parametrize(
    ("replicas", "num_fronts", "expected"),
    [
        ("auto", 1, [1] * 15),
        ("auto", 4, [1] * 11),
        (2, 4, [6, 5]),
        (1, 4, [11]),
        (12, 4, [1] * 12),  # more than there is room for: the fronts have what is left
        ("auto", 20, [1]),
        (3, 20, [1, 1, 1]),
    ],
)
def test_fronts_and_their_owner_have_cores_before_a_replica_has_a_second_one(
    replicas, num_fronts, expected, usable
):
    of = machine(16) if usable is None else machine(64, usable=usable)
    placed = place_replicas(
        replicas, device="cpu", num_threads=None, num_fronts=num_fronts, machine=of
    )
    assert [one.num_threads for one in placed] == expected


def test_sixteen_cores_of_two_nodes_leave_five_to_four_fronts_and_their_owner():
    cores = tuple(Core(node=number // 8, processors=(number,)) for number in range(16))
    of = Machine(cores=cores, num_usable=16, num_gpus=lambda: 0, environment={})
    placed = place_replicas("auto", device="cpu", num_threads=None, num_fronts=4, machine=of)
    used = [number for one in placed for number in one.processors or ()]
    assert used == [0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12]


@given(
    st.integers(1, 40),
    st.integers(1, 8),
    st.one_of(st.just("auto"), st.integers(1, 40)),
    st.one_of(st.none(), st.integers(1, 40)),
)
def test_every_replica_has_a_core_and_the_rest_is_the_fronts_first(
    num_cores, num_fronts, replicas, usable
):
    num_usable = min(num_cores, usable or num_cores)
    if replicas != "auto" and replicas > num_usable:
        return
    placed = place_replicas(
        replicas,
        device="cpu",
        num_threads=None,
        num_fronts=num_fronts,
        machine=machine(num_cores, usable=num_usable),
    )
    beside = num_usable - sum(one.num_threads for one in placed)
    assert min(one.num_threads for one in placed) >= 1
    assert beside == min(cores_beside_engines(num_fronts), num_usable - len(placed))


def test_beside_gpus_too_threads_are_what_fronts_and_owner_leave():
    placed = place_replicas(
        2, device="cuda", num_threads=None, num_fronts=3, machine=machine(16, gpus=2)
    )
    assert [one.num_threads for one in placed] == [6, 6]


@pytest.mark.parametrize(("replicas", "expected"), [(2, ["0", "1"]), ("auto", ["0", "1", "2"])])
def test_on_gpus_each_sees_one(replicas, expected):
    placed = place_replicas(replicas, device="auto", num_threads=None, machine=machine(7, gpus=3))
    assert [one.visible_device for one in placed] == expected
    assert {one.processors for one in placed} == {None}


def test_devices_that_are_named_are_handed_out_by_their_names():
    named = machine(4, gpus=2, visible="GPU-aa, GPU-bb")
    placed = place_replicas("auto", device="cuda", num_threads=None, machine=named)
    assert [one.visible_device for one in placed] == ["GPU-aa", "GPU-bb"]


def test_where_devices_are_not_to_be_used_nobody_counts_them():
    placed = place_replicas(2, device="cpu", num_threads=None, machine=machine(2, gpus=8))
    assert [one.visible_device for one in placed] == [None, None]


@pytest.mark.parametrize(
    ("replicas", "device", "of", "complaint"),
    [
        (3, "cpu", machine(2), "DRAGOMAN_REPLICAS is 3; 2 processors may be used here"),
        (9, "auto", machine(64, usable=8), "DRAGOMAN_REPLICAS is 9; 8 processors may be used here"),
        (2, "auto", machine(64, gpus=1), "DRAGOMAN_REPLICAS is 2; 1 GPUs may be used here"),
        (2, "cuda", machine(64), "DRAGOMAN_REPLICAS is 2; 0 GPUs may be used here"),
    ],
)
def test_more_replicas_than_there_is_room_for_are_refused(replicas, device, of, complaint):
    with pytest.raises(ConfigError, match=complaint):
        place_replicas(replicas, device=device, num_threads=None, machine=of)


def test_without_a_device_the_one_engine_says_what_is_wrong():
    placed = place_replicas("auto", device="cuda", num_threads=3, machine=machine(8))
    assert placed == (Placement(num_threads=3),)


def test_gpus_are_counted_by_the_driver_and_are_none_for_a_torch_of_cpus(tmp_path: Path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    for_cpus, for_gpus = tmp_path / "cpus", tmp_path / "gpus"
    for torch, cuda in ((for_cpus, "None"), (for_gpus, "'13.0'")):
        torch.mkdir()
        lines = ("debug = False", f"cuda: Optional[str] = {cuda}", "hip: Optional[str] = None")
        (torch / "version.py").write_text("\n".join(lines))
    source = tmp_path / "driver.c"
    for result, expected in ((0, 3), (100, 0)):
        source.write_text(
            f"int cuInit(unsigned flags) {{ return {result}; }}\n"
            "int cuDeviceGetCount(int *count) { *count = 3; return 0; }\n"
        )
        library = tmp_path / f"driver{result}.so"
        command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source)]
        subprocess.run(command, check=True)
        assert num_gpus(str(library), torch=for_gpus) == expected
        assert num_gpus(str(library), torch=for_cpus) == 0


def test_without_a_driver_there_is_no_gpu():
    torch = Path("/nowhere")
    assert num_gpus("libno-such-driver.so.1", torch=torch) == 0
    another = ctypes.util.find_library("m") or "libm.so.6"
    assert num_gpus(another, torch=torch) == 0
