"""torch.testing: what assert_close and assert_allclose say of two nests, and what make_tensor makes or refuses."""

import warnings

import numpy as np

from tests.cases.case import Case

CASES: list[Case] = []
NAN, INF = float("nan"), float("inf")


def told(call):
    """What the call returns or raises, as text."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = f"{call()}"
    except Exception as error:
        found = f"{type(error).__name__}: {error}".replace("pywebgpu.tensor.tensor", "torch")
    return [found, *("deprecated" for one in said if one.category is FutureWarning)]


def ones(torch, *shape, **options):
    return torch.ones(*shape, **options)


def stepped(torch, *values, **options):
    return torch.tensor(values, **options)


# name: two values, and how they are compared.
COMPARED = {
    "equal": lambda torch: (ones(torch, 3), ones(torch, 3), {}),
    "values": lambda torch: (stepped(torch, 1.0, 2.0, 3.0), stepped(torch, 1.0, 4.0, 5.0), {}),
    "values_2d": lambda torch: (torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.0], [3.0, 8.0]]), {}),
    "values_exactly": lambda torch: (ones(torch, 2, 2), torch.zeros(2, 2), {"rtol": 0, "atol": 0}),
    "near_enough": lambda torch: (ones(torch, 2), stepped(torch, 1.0, 1.25), {"rtol": 0, "atol": 0.5}),
    "with_a_gradient": lambda torch: (ones(torch, 2, requires_grad=True), torch.zeros(2), {}),
    "nan": lambda torch: (stepped(torch, NAN), stepped(torch, NAN), {}),
    "nan_that_is_equal": lambda torch: (stepped(torch, NAN), stepped(torch, NAN), {"equal_nan": True}),
    "infinity": lambda torch: (stepped(torch, INF, 1.0), stepped(torch, 1.0, 1.0), {}),
    "integers": lambda torch: (stepped(torch, 1, 2), stepped(torch, 1, 4), {}),
    "integers_far_apart": lambda torch: (stepped(torch, 2**31 - 1, 2), stepped(torch, -(2**31), 2), {}),
    "bytes": lambda torch: (stepped(torch, 1, 2, dtype=torch.uint8), stepped(torch, 3, 2, dtype=torch.uint8), {}),
    "bools": lambda torch: (stepped(torch, True, False), stepped(torch, True, True), {}),
    "halves": lambda torch: (ones(torch, 2).half(), stepped(torch, 1.0, 2.0).half(), {}),
    "scalar_tensors": lambda torch: (torch.tensor(1.0), torch.tensor(2.0), {}),
    "scalar_tensor_and_zero": lambda torch: (torch.tensor(1.0), torch.tensor(0.0), {}),
    "no_elements": lambda torch: (ones(torch, 0), ones(torch, 0), {}),
    "floats": lambda torch: (1.0, 1.5, {}),
    "floats_within": lambda torch: (1.0, 1.5, {"rtol": 0, "atol": 1}),
    "floats_exactly": lambda torch: (1.0, 1.5, {"rtol": 0, "atol": 0}),
    "float_nan": lambda torch: (NAN, NAN, {}),
    "float_nan_that_is_equal": lambda torch: (NAN, NAN, {"equal_nan": True}),
    "whole_numbers": lambda torch: (1, 2, {}),
    "complex_numbers": lambda torch: (1 + 2j, 1 + 3j, {}),
    "numbers_of_two_types": lambda torch: (1, 1.0, {}),
    "numbers_of_any_type": lambda torch: (1, 1.0, {"check_dtype": False}),
    "none_and_a_number": lambda torch: (None, 1, {}),
    "two_nones": lambda torch: (None, None, {}),
    "two_bools": lambda torch: (True, False, {}),
    "a_bool_of_numpy": lambda torch: (np.bool_(True), False, {}),
    "a_number_of_numpy": lambda torch: (np.float32(1), 1.5, {}),
    "arrays": lambda torch: (np.array([1.0, 2.0], "float32"), np.array([1.0, 4.0], "float32"), {}),
    "equal_arrays": lambda torch: (np.ones(2, "float32"), np.ones(2, "float32"), {}),
    "arrays_of_two_dtypes": lambda torch: (np.ones(2, "float32"), np.ones(2, "int64"), {}),
    "texts": lambda torch: ("a", "a", {}),
    "a_list_and_a_number": lambda torch: ([1], 1, {}),
    "shapes": lambda torch: (ones(torch, 2), ones(torch, 3), {}),
    "sizes": lambda torch: (ones(torch, 2, 3).shape, (2, 4), {}),
    "dtypes": lambda torch: (ones(torch, 2), ones(torch, 2, dtype=torch.int32), {}),
    "dtypes_unchecked": lambda torch: (ones(torch, 2), stepped(torch, 1, 3), {"check_dtype": False}),
    "strides_unchecked": lambda torch: (ones(torch, 2, 3), ones(torch, 3, 2).t(), {}),
    "strides": lambda torch: (ones(torch, 2, 3), ones(torch, 3, 2).t(), {"check_stride": True}),
    "rtol_alone": lambda torch: (ones(torch, 2), ones(torch, 2), {"rtol": 1}),
    "atol_alone": lambda torch: ([ones(torch, 2)], [ones(torch, 2)], {"atol": 1}),
    "lengths": lambda torch: ([1, 2], [1], {}),
    "lengths_inside": lambda torch: ({"a": [1, 2]}, {"a": [1]}, {}),
    "keys": lambda torch: ({"a": 1, "b": 2}, {"a": 1, "c": 3}, {}),
    "a_nest": lambda torch: ({"a": [ones(torch, 2), 1]}, {"a": (ones(torch, 2), 2)}, {}),
    "what_cannot_be_compared_comes_first": lambda torch: ([ones(torch, 2), "x"], [torch.zeros(2), "x"], {}),
    "a_message": lambda torch: (ones(torch, 2), torch.zeros(2), {"msg": "no!"}),
    "a_message_made": lambda torch: ([1.0], [2.0], {"msg": lambda text: f"<<{text}>>"}),
    "a_message_for_no_comparison": lambda torch: ("a", "b", {"msg": "no!"}),
    "a_subclass": lambda torch: (torch.nn.Parameter(ones(torch, 2)), ones(torch, 2), {}),
    "coordinates": lambda torch: (coordinates(torch, [0, 1], [1.0, 2.0]), coordinates(torch, [0, 1], [1.0, 4.0]), {}),
    "other_coordinates": lambda torch: (coordinates(torch, [0, 1], [1.0, 2]), coordinates(torch, [0, 2], [1.0, 2]), {}),
    "fewer_coordinates": lambda torch: (coordinates(torch, [0, 1], [1.0, 2.0]), coordinates(torch, [0], [1.0]), {}),
    "layouts": lambda torch: (coordinates(torch, [0, 1], [1.0, 2.0]), stepped(torch, 1.0, 2.0, 0.0), {}),
    "layouts_unchecked": lambda torch: (
        coordinates(torch, [0, 1], [1.0, 2.0]), stepped(torch, 1.0, 2.0, 0.0), {"check_layout": False}
    ),
    "rows": lambda torch: (torch.eye(2).to_sparse_csr(), (2 * torch.eye(2)).to_sparse_csr(), {}),
}  # fmt: skip


def coordinates(torch, indices, values):
    return torch.sparse_coo_tensor([indices], values, (3,))


def add(name, call):
    CASES.append(Case(name, lambda torch: told(lambda: call(torch)), grad=False))


def close(torch, pair):
    actual, expected, options = pair(torch)
    return torch.testing.assert_close(actual, expected, **options)


for name, pair in COMPARED.items():
    add(f"assert_close_{name}", lambda torch, pair=pair: close(torch, pair))
add("assert_allclose_of_a_list", lambda torch: torch.testing.assert_allclose(ones(torch, 2), [1.0, 2.0]))
add("assert_allclose_of_nan", lambda torch: torch.testing.assert_allclose([1.0, NAN], [1.0, NAN]))
add("assert_allclose_nearly", lambda torch: torch.testing.assert_allclose(ones(torch, 2), ones(torch, 2) * 1.00001))


def made(torch, *shape, dtype="float32", **options):
    x = torch.testing.make_tensor(
        *shape, dtype=getattr(torch, dtype), device=torch.ones(1).device, **options
    )  # The values are drawn: only what they are like is told.
    return tuple(x.shape), str(x.dtype), x.stride(), x.storage_offset(), x.requires_grad, values(x, **options)


def values(x, low=None, high=None, exclude_zero=False, **options):
    if x.is_complex():
        return []
    low, high = -9 if low is None else low, 10 if high is None else high
    return [bool((x >= low).all()), bool((x < high).all()), not exclude_zero or bool((x != 0).all())]


for dtype in ("float32", "float16", "int64", "int32", "uint8", "bool", "complex64"):
    add(f"make_tensor_{dtype}", lambda torch, dtype=dtype: made(torch, 2, 3, dtype=dtype))
    add(f"make_tensor_without_0_{dtype}", lambda torch, dtype=dtype: made(torch, 40, dtype=dtype, exclude_zero=True))
add("make_tensor_of_a_tuple", lambda torch: made(torch, (2, 3), requires_grad=True))
add("make_tensor_of_a_number", lambda torch: made(torch, ()))
add("make_tensor_with_gaps", lambda torch: made(torch, (2, 3), noncontiguous=True))
add("make_tensor_between", lambda torch: made(torch, 30, low=2.0, high=2.5))
add("make_tensor_of_whole_numbers_between", lambda torch: made(torch, 30, dtype="int32", low=0.5, high=2.5))
add("make_tensor_of_all_numbers", lambda torch: made(torch, 30, low=-3e38, high=3e38))
add("make_tensor_of_an_empty_range", lambda torch: made(torch, 2, low=3, high=1))
add("make_tensor_beyond_the_dtype", lambda torch: made(torch, 2, dtype="uint8", low=300, high=400))
add("make_tensor_from_nan", lambda torch: made(torch, 2, low=NAN))
add("make_tensor_of_one_number", lambda torch: made(torch, 2, low=1.0, high=1.0)[0])
add("make_tensor_gradient_of_integers", lambda torch: made(torch, 2, dtype="int64", requires_grad=True))
