"""Rule 8: imports work in any order, with real work on both sides, and import nothing heavy."""

import pytest
from conftest import is_installed

WORK = """
import numpy as np

def use_tensorhash():
    import tensorhash
    keys = np.random.default_rng(0).integers(0, 1000, (200_000, 3)).astype(np.int32)
    table = tensorhash.HashSet(0, "int32", (3,))
    indices, mask = table.insert(keys)
    assert np.array_equal(table.keys(), keys[mask])
    assert (table.find(keys)[0] == indices).all()

def use_torch():
    import torch
    a = torch.rand(300, 300)
    assert torch.linalg.norm(torch.linalg.inv(a) @ a - torch.eye(300)) < 10
    assert torch.arange(100_000).sum().item() == 4999950000

def use_jax():
    import jax.numpy as jnp
    assert float(jnp.dot(jnp.ones(1000), jnp.ones(1000))) == 1000

def use_scipy():
    import scipy.linalg, scipy.spatial
    a = np.eye(200) * 2
    assert np.allclose(scipy.linalg.inv(a), np.eye(200) / 2)
    assert scipy.spatial.cKDTree(np.random.rand(1000, 3)).query(np.zeros(3))[1] >= 0
"""


@pytest.mark.parametrize("other", ["torch", "jax", "scipy"])
@pytest.mark.parametrize("first", ["tensorhash", "other"])
def test_rule_08_both_import_orders_work(run_program, other, first):
    if not is_installed(other):
        pytest.skip(f"{other} is not installed")
    names = ["tensorhash", other] if first == "tensorhash" else [other, "tensorhash"]
    calls = [f"use_{name}()" for name in names]
    run_program(WORK, *calls, *calls)


def test_importing_tensorhash_imports_no_framework(run_program):
    run_program(
        """
        import sys
        import tensorhash, tensorhash.core

        table = tensorhash.HashMap(0, "int64", (), "float32", ())
        table.insert([1, 2], [0.5, 1.5])
        tensorhash.unique([1, 2, 1])
        tensorhash.core.HashSet(1, tensorhash.core.int64, (1,))
        heavy = {"torch", "jax", "jaxlib", "tensorflow", "scipy", "open3d", "ml_dtypes", "cupy"}
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
        """
    )


def test_numpy_is_the_only_requirement(run_program):
    # All other packages are hidden from imports.
    run_program(
        """
        import sys

        class Refuse:
            allowed = {"numpy", "tensorhash"}

            def find_spec(self, name, path=None, target=None):
                top = name.partition(".")[0]
                if top not in self.allowed and top not in sys.stdlib_module_names:
                    raise ImportError(f"{name} was imported")

        sys.meta_path.insert(0, Refuse())
        import pickle
        import numpy as np
        import tensorhash
        import tensorhash.core as o3c

        table = tensorhash.HashMap(0, "int32", (3,), "float32", (1,))
        table.insert(np.zeros((5, 3), dtype=np.int32), np.ones((5, 1), dtype=np.float32))
        assert pickle.loads(pickle.dumps(table)).size() == 1
        o3c.HashSet(2, o3c.int64, (1,)).insert(o3c.Tensor([[1]]))
        half = tensorhash.HashMap(0, "int64", (), "bfloat16", ())
        half.insert([1], [1.5])
        try:
            half.get([1])
        except TypeError as error:
            assert "ml_dtypes" in str(error)
        else:
            raise SystemExit("bfloat16 came out of NumPy without ml_dtypes")
        """
    )


def test_submodules_load_on_first_access(run_program):
    run_program(
        """
        import sys
        import tensorhash as th

        names = ("coords", "core", "torch", "tensorflow", "distributed")
        assert not [name for name in names if f"tensorhash.{name}" in sys.modules]
        assert {"coords", "core", "HashMap"} <= set(dir(th))
        assert th.coords.voxelize([[0.5]], 1.0).coords.tolist() == [[0]]
        assert th.core.Tensor([1]).numpy().tolist() == [1]
        assert "tensorhash.coords" in sys.modules
        assert not {"torch", "tensorflow", "jax"} & sys.modules.keys()
        from tensorhash import coords
        assert coords is th.coords is sys.modules["tensorhash.coords"]
        try:
            th.nowhere
        except AttributeError as error:
            assert "tensorhash" in str(error) and "nowhere" in str(error)
        else:
            raise SystemExit("th.nowhere is there")
        assert not hasattr(th, "_nowhere")
        """
    )


def test_submodules_that_need_torch_import_it_on_first_use(run_program):
    pytest.importorskip("torch")
    run_program(
        """
        import sys
        import tensorhash as th

        assert {"torch", "distributed"} <= set(dir(th))
        assert "torch" not in sys.modules
        assert th.torch.SparseConv3d(1, 1, 3).weight.shape == (27, 1, 1)
        assert th.distributed.DistributedHashMap.__name__ == "DistributedHashMap"
        assert "torch" in sys.modules and "tensorflow" not in sys.modules
        """
    )


HIDE = """
import importlib.abc, sys

class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "tensorflow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hide())
"""


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_a_submodule_without_its_package_says_what_to_install(run_program, name):
    run_program(
        HIDE,
        f"""
        import inspect
        import tensorhash as th

        def refused(load):
            try:
                load()
            except ImportError as error:
                assert "tensorhash.{name} needs" in str(error), error
                assert "pip install {name}" in str(error), error
            else:
                raise SystemExit("nothing was raised")

        def load():
            import tensorhash.{name}

        def load_from():
            from tensorhash import {name}

        for one in (load, load_from, lambda: th.{name}):
            refused(one)
        """,
    )


def test_checkpoints_are_read_without_torch_and_tables_say_what_to_install(run_program):
    run_program(
        HIDE,
        """
        from tensorhash.distributed import load_hash_map, load_into

        try:
            from tensorhash.distributed import DistributedHashMap
        except ImportError as error:
            assert "tensorhash.distributed.DistributedHashMap needs torch" in str(error), error
            assert "pip install torch" in str(error), error
        else:
            raise SystemExit("nothing was raised")
        """,
    )


def test_tools_that_read_every_name_meet_no_missing_package(run_program):
    run_program(
        """
        import importlib.util, inspect

        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: (
            None if name in ("torch", "tensorflow") else find(name, *rest)
        )
        import tensorhash as th

        assert not {"torch", "tensorflow", "distributed"} & set(dir(th))
        assert dict(inspect.getmembers(th)).keys() >= {"coords", "core", "HashMap"}
        """
    )


def test_the_layers_do_not_import_torch_s_compiler(run_program):
    """It takes seconds, and only torch.compile needs it."""
    if not is_installed("torch"):
        pytest.skip("torch is not installed")
    run_program(
        """
        import sys
        import torch
        import tensorhash.torch

        layer = tensorhash.torch.HashEmbedding(2)
        layer(torch.tensor([1, 2])).sum().backward()
        x = tensorhash.torch.SparseTensor(torch.ones(1, 4), torch.tensor([[0, 1, 2, 3]]))
        tensorhash.torch.SparseConv3d(4, 4, 3, stride=2)(x).features.sum().backward()
        assert "torch._dynamo" not in sys.modules
        """
    )
