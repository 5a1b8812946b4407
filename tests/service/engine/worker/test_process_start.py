"""The start of an engine, and what stands in its way."""

import logging

import msgspec
import pytest
import torch

from service.engine.messages import (
    PROTOCOL_VERSION,
    Cancel,
    FrontMessage,
    StartFailed,
)
from service.engine.worker.channel import EngineChannel
from service.engine.worker.process import serve
from support.engine_by_hand import Clock, Front, segment, submit, warm_pair


def test_a_front_that_goes_before_the_engine_is_warm_ends_it_in_order(ends, configure):
    front, channel = ends
    front.say(configure)
    front.connection.close()
    assert serve(channel, clock=Clock()) == 0


def test_a_front_that_goes_without_a_word_ends_the_engine_in_order(ends):
    front, channel = ends
    front.connection.close()
    assert serve(channel, clock=Clock()) == 0


def start_failure(ends: tuple[Front, EngineChannel], *messages: FrontMessage) -> str:
    front, channel = ends
    front.say(*messages)
    assert serve(channel, clock=Clock()) == 1
    [failure] = front.hear()
    assert isinstance(failure, StartFailed)
    return failure.message


def test_without_a_checkpoint_there_is_nothing_to_serve(ends, configure):
    none = msgspec.structs.replace(configure, checkpoint_paths=())
    assert "must name at least 1" in start_failure(ends, none)


def test_a_front_of_another_version_is_told_so(ends, configure):
    newer = msgspec.structs.replace(configure, protocol_version=PROTOCOL_VERSION + 1)
    assert start_failure(ends, newer) == (
        f"the front speaks protocol {PROTOCOL_VERSION + 1}; the engine speaks {PROTOCOL_VERSION}"
    )


def test_the_first_message_must_be_the_configuration(ends, configure):
    assert "must be Configure" in start_failure(ends, Cancel(segment_ids=(1,)))


def test_nothing_may_follow_the_configuration_before_its_answer(ends, configure):
    assert "must be Configure" in start_failure(ends, configure, submit(segment(1)))


def test_a_first_message_that_cannot_be_read_is_explained(ends):
    payload = msgspec.msgpack.encode({"type": "configure", "checkpoint_paths": ["x"]})
    ends[0].connection.sendall(len(payload).to_bytes(4, "big") + payload)
    assert "num_threads" in start_failure(ends)


def test_a_checkpoint_that_is_not_there_is_named_in_the_answer(ends, configure, tmp_path):
    missing = tmp_path / "no-such-checkpoint"
    lost = msgspec.structs.replace(configure, checkpoint_paths=(str(missing),))
    assert start_failure(ends, lost) == f"{missing}: no such checkpoint directory"


def test_the_engine_logs_from_the_level_it_is_told(ends, configure):
    warm_pair(ends, msgspec.structs.replace(configure, log_level="debug"))
    assert logging.getLogger().level == logging.DEBUG


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_named_in_the_answer(ends, configure):
    elsewhere = msgspec.structs.replace(configure, device="cuda")
    message = start_failure(ends, elsewhere)
    assert message == "device is 'cuda', but torch finds no CUDA device"


@pytest.mark.parametrize("name", ["num_threads", "max_rows", "max_slots", "admit_token_budget"])
def test_a_limit_that_allows_nothing_is_named_in_the_answer(ends, configure, name):
    nothing = msgspec.structs.replace(configure, **{name: 0})
    assert start_failure(ends, nothing) == f"{name} is 0; it must be at least 1"


@pytest.mark.parametrize("share", [-0.25, 1.0, float("nan")])
def test_a_reserve_that_leaves_bulk_nothing_is_named_in_the_answer(ends, configure, share):
    strange = msgspec.structs.replace(configure, reserved_share=share)
    expected = f"reserved_share is {share:g}; it must be at least 0 and below 1"
    assert start_failure(ends, strange) == expected
