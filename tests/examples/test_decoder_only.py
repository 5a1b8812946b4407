"""The decoder by itself, as a language model."""

import pytest
import torch

from examples.decoder_only import CONFIG, LENGTH, LanguageModel, main, progressions


def test_the_example_learns_to_continue_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    num_threads = torch.get_num_threads()
    try:
        main()
    finally:
        torch.set_num_threads(num_threads)
    continuation, shares = capsys.readouterr().out.splitlines()
    assert continuation == "3 5 continues: 7 9 1 3 5 7 9 1 3 5"
    share, _, rest = shares.partition("%")
    assert float(share) > 90.0
    assert rest == " of all sequences are continued correctly"


@torch.no_grad()
def test_no_position_sees_those_behind_it() -> None:
    torch.manual_seed(3)
    language_model = LanguageModel(CONFIG).eval()
    ids = progressions(4, torch.Generator().manual_seed(1))
    whole = language_model(ids)
    for length in (1, 5, LENGTH):
        torch.testing.assert_close(language_model(ids[:, :length]), whole[:, :length])


def test_without_an_encoder_output_cross_attention_takes_no_part() -> None:
    language_model = LanguageModel(CONFIG)
    language_model(progressions(2, torch.Generator().manual_seed(1))).sum().backward()
    for name, parameter in language_model.named_parameters():
        assert (parameter.grad is None) == ("cross_attention" in name), name
