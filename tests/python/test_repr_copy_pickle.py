"""repr, copy, deepcopy and pickle: exact clones, including every index."""

import copy
import pickle

import numpy as np
import pytest
from oracle import next_indices, same, snapshot

import tensorhash
import tensorhash.core as o3c


def churned(module=tensorhash, dtype="int64"):
    """A map with erased entries and a free stack in an unusual order."""
    table = module.HashMap(4, dtype, (2,), "float32", ())
    keys = np.arange(100).reshape(50, 2)
    table.insert(keys, np.arange(50, dtype=np.float32))
    table.erase(keys[[30, 2, 17, 49]])
    return table


TWINS = {
    "clone": lambda table: table.clone(),
    "to": lambda table: table.to("cpu", copy=True),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda table, p=protocol: pickle.loads(pickle.dumps(table, p))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("how", TWINS)
@pytest.mark.parametrize("module", [tensorhash, o3c])
def test_a_twin_has_the_same_entries_indices_and_free_stack(how, module):
    table = churned(module)
    twin = TWINS[how](table)
    assert type(twin) is type(table)
    assert snapshot(twin)[:2] == snapshot(table)[:2]
    same(twin.active_buf_indices(), table.active_buf_indices())
    for got, expected in zip(twin.items(), table.items(), strict=True):
        same(got, expected)
    assert next_indices(twin) == next_indices(table) == [49, 17, 2, 30, 50, 51, 52, 53]
    assert type(twin.keys()) is type(table.keys())
    twin.validate()


@pytest.mark.parametrize("how", TWINS)
def test_a_twin_is_independent(how):
    table = churned()
    before = snapshot(table)
    twin = TWINS[how](table)
    twin.value_tensor()[:] = -5
    twin.insert(np.array([[-1, -1]]), np.float32([0]))
    twin.erase(twin.keys()[:20])
    twin.compact()
    assert snapshot(table) == before


def test_a_set_pickles():
    table = tensorhash.HashSet(3, "uint8", (3,))
    table.insert(np.uint8([[1, 2, 3], [4, 5, 6]]))
    twin = pickle.loads(pickle.dumps(table))
    assert isinstance(twin, tensorhash.HashSet)
    same(twin.keys(), table.keys())


def test_pickle_out_of_band_buffers_come_back():
    buffers = []
    data = pickle.dumps(churned(), protocol=5, buffer_callback=buffers.append)
    twin = pickle.loads(data, buffers=buffers)
    same(twin.keys(), churned().keys())
    twin.validate()


def test_a_torch_table_comes_back_as_a_torch_table():
    torch = pytest.importorskip("torch")
    table = tensorhash.HashMap(3, torch.int64, (), torch.bfloat16, ())
    table.insert(torch.tensor([5, 6]), torch.tensor([1.5, 2.5], dtype=torch.bfloat16))
    for how in TWINS:
        twin = TWINS[how](table)
        assert isinstance(twin.keys(), torch.Tensor)
        assert twin.value_tensor().dtype == torch.bfloat16
        assert twin.get(torch.tensor([6])).item() == 2.5


def test_a_damaged_pickle_is_an_error():
    data = bytearray(pickle.dumps(churned(), protocol=4))
    position = data.find(np.arange(100).tobytes()[:64])
    if position < 0:
        position = len(data) // 2
    data[position + 8] ^= 0x55
    with pytest.raises(ValueError):
        pickle.loads(bytes(data))


def test_repr_says_what_a_table_holds():
    text = repr(churned())
    for part in ("HashMap", "46", "int64", "(2,)", "float32", "cpu"):
        assert part in text
    assert str(churned().capacity()) in text
    text = repr(tensorhash.HashSet(7, "uint8", (3,)))
    for part in ("HashSet", "0", "7", "uint8", "(3,)"):
        assert part in text
    assert "\n" not in text


def test_tables_compare_by_identity_and_hash():
    table = churned()
    assert table == table
    assert table != churned()
    assert len({table, table}) == 1
