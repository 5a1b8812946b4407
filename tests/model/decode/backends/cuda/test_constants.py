import torch

from model.decode.backends.cuda.constants import Constants


def test_numbers_in_a_row_are_made_once_while_it_is_entered_and_no_longer() -> None:
    constants = Constants()
    with constants:
        first = torch.arange(5, device="cpu")
        eye = torch.eye(3, dtype=torch.bool)
    with constants:
        assert torch.arange(5, device="cpu") is first
        assert torch.eye(3, dtype=torch.bool) is eye
        assert torch.arange(6, device="cpu") is not first
        assert torch.arange(5, device="cpu", dtype=torch.int32).dtype == torch.int32
        assert torch.zeros(2) is not torch.zeros(2)
    assert torch.arange(5, device="cpu") is not first
    assert first.tolist() == [0, 1, 2, 3, 4]
