"""A function evaluated in float64 computes nothing in float32, whatever it says."""

import threading

import pytest
import torch
from torch.nn import functional as F

from assay.float64 import exactly, mode, widened

AGE = torch.tensor([1, 7, 30, 399])
MASK = torch.tensor([[True, False, True], [True, True, True]])
X = torch.tensor([0.1, -2.7, 3.3e-5, 1e4])
THIRD = torch.tensor([1 / 3, 0.1], dtype=torch.float32)
"""A constant of a user's module: its values are those of float32, what is computed with it is not."""
AGES, XS = AGE.double(), X.double()


def _made_of_rows(x: torch.Tensor) -> torch.Tensor:
    made = torch.empty(x.shape)
    made[:] = x / 3
    return made


def _bits_of_a_float32(x: torch.Tensor) -> torch.Tensor:
    """Return the values cut off to bf16's bits, as in the time before PyTorch knew bf16."""
    return (x.float().view(torch.int32) & -65536).view(torch.float32)


FORMULAS = {
    "an integer over a number": (lambda: torch.exp(-AGE / 30.0), torch.exp(-AGES / 30.0)),
    "a number over an integer": (lambda: 1 / AGE, 1 / AGES),
    "an integer over an integer": (lambda: AGE / AGE.flip(0), AGES / AGES.flip(0)),
    "a count and a number": (lambda: MASK.sum(-1) + 1e-9, MASK.sum(-1).double() + 1e-9),
    "a mask times a number": (lambda: MASK * 0.1, MASK.double() * 0.1),
    "a function of integers": (lambda: AGE.log(), AGES.log()),
    "a root, by name": (lambda: torch.sqrt(input=AGE), AGES.sqrt()),
    "numbers chosen by a mask": (
        lambda: torch.where(MASK, 0.1, -0.3),
        torch.where(MASK, *torch.tensor([0.1, -0.3], dtype=torch.float64)),
    ),
    "a tensor of numbers": (lambda: torch.tensor([0.1, 0.7]), torch.tensor([0.1, 0.7], dtype=torch.float64)),
    "a grid": (lambda: torch.linspace(0, 1, 7), torch.linspace(0, 1, 7, dtype=torch.float64)),
    "a constant": (lambda: torch.full((3,), 0.1), torch.full((3,), 0.1, dtype=torch.float64)),
    "float32, by name": (lambda: torch.softmax(X.double(), -1, dtype=torch.float32), torch.softmax(XS, -1)),
    "float()": (lambda: torch.softmax(X.double().float(), -1), torch.softmax(XS, -1)),
    "to(float32)": (lambda: (X.double().to(torch.float32) * 0.1).sin(), (XS * 0.1).sin()),
    "an integer converted": (lambda: AGE.float() / 7, AGES / 7),
    "a constant of float32": (lambda: THIRD / 3, THIRD.double() / 3),
    "several results": (lambda: torch.var_mean(AGE.float())[0], torch.var_mean(AGES)[0]),
    "results with names": (lambda: (AGE / 30).sort().values, (AGES / 30).sort().values),
    "written in place": (lambda: _made_of_rows(AGE), AGES / 3),
    "one_hot": (lambda: F.one_hot(AGE % 3, 3).float() / 3, F.one_hot(AGE % 3, 3).double() / 3),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_no_formula_is_evaluated_in_float32(name: str) -> None:
    formula, right = FORMULAS[name]
    with mode():
        result = formula()
    assert result.dtype == torch.float64
    assert torch.equal(result, right)


def test_bits_of_a_float32_are_those_of_a_float32() -> None:
    assert torch.equal(exactly(_bits_of_a_float32, [X], {}), _bits_of_a_float32(X).double())


def test_narrower_formats_round_as_the_reference_says() -> None:
    assert torch.equal(exactly(lambda x: x.bfloat16().float() / 3, [X], {}), X.bfloat16().double() / 3)


def test_constants_in_place_are_changed_once() -> None:
    held = torch.tensor([0.5])
    with mode():
        held.mul_(2)
    assert held.item() == 1.0


def test_random_numbers_are_those_of_plain_pytorch() -> None:
    def drawn() -> torch.Tensor:
        return torch.rand(5, generator=torch.Generator().manual_seed(3))

    plain = drawn()
    with mode():
        assert torch.equal(drawn(), plain.double())


def test_gradients_are_in_float64() -> None:
    def slope(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad((x.float() / 3).exp().sum(), x)[0]

    assert torch.equal(exactly(slope, [X[:3]], {}), (XS[:3] / 3).exp() / 3)


def test_named_tensors_are_widened_too() -> None:
    assert exactly(lambda x, scale: x * scale, [X], {"scale": torch.tensor(0.1)}).dtype == torch.float64


def test_other_threads_compute_as_ever() -> None:
    seen = []
    with mode():
        thread = threading.Thread(target=lambda: seen.append((AGE / 30.0).dtype))
        thread.start()
        thread.join()
    assert seen == [torch.float32]
    assert torch.get_default_dtype() == torch.float32
    assert (AGE / 30.0).dtype == torch.float32


def test_widened_integers_and_booleans_stay_what_they_are() -> None:
    assert widened(AGE.to(torch.int16)).dtype == torch.int64
    assert widened(MASK).dtype == torch.bool
