"""Thread counts: setting, environment, and results that do not depend on them."""

import os
import pathlib

import numpy as np
import pytest

import tensorhash


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64])
def test_get_num_threads_returns_what_set_num_threads_set(count):
    tensorhash.set_num_threads(count)
    assert tensorhash.get_num_threads() == count
    table = tensorhash.HashSet(0, "int64", ())
    assert table.insert(np.arange(100_000))[1].all()


@pytest.mark.parametrize("bad", [0, -1, 10**9, -(2**40), 2**70])
def test_a_thread_count_out_of_range_is_a_value_error(bad):
    before = tensorhash.get_num_threads()
    with pytest.raises(ValueError, match="expected 1 to"):
        tensorhash.set_num_threads(bad)
    assert tensorhash.get_num_threads() == before


@pytest.mark.parametrize("bad", [1.5, "2", None, [1]])
def test_a_thread_count_that_is_no_integer_is_a_type_error(bad):
    before = tensorhash.get_num_threads()
    with pytest.raises(TypeError):
        tensorhash.set_num_threads(bad)
    assert tensorhash.get_num_threads() == before


@pytest.mark.parametrize("count", [1, 3, 16])
def test_the_environment_sets_the_count_of_a_fresh_process(run_program, count):
    printed = run_program(
        "import tensorhash; print(tensorhash.get_num_threads())",
        TENSORHASH_NUM_THREADS=str(count),
    )
    assert int(printed) == count


@pytest.mark.parametrize("bad", ["0", "-2", "many", "1.5", "99999999999999999999", "4x"])
def test_a_bad_environment_is_reported_or_refused_and_never_used(run_program, bad):
    printed = run_program(
        """
        import os
        import numpy as np
        import tensorhash

        assert 1 <= tensorhash.get_num_threads() <= max(1, len(os.sched_getaffinity(0)))
        table = tensorhash.HashSet(0, "int64", ())
        assert table.insert(np.arange(50_000))[1].all()
        print("works")
        """,
        TENSORHASH_NUM_THREADS=bad,
    )
    assert "works" in printed


def test_the_default_follows_cpu_affinity(run_program):
    program = """
        import os
        os.environ.pop("TENSORHASH_NUM_THREADS", None)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        import tensorhash
        assert tensorhash.get_num_threads() == 1
        """
    run_program(program)


def test_the_default_does_not_exceed_what_the_machine_allows(run_program):
    printed = run_program(
        """
        import os
        os.environ.pop("TENSORHASH_NUM_THREADS", None)
        import tensorhash
        print(tensorhash.get_num_threads())
        """
    )
    assert 1 <= int(printed) <= len(os.sched_getaffinity(0))


def test_one_thread_starts_no_other(run_program):
    run_program(
        """
        import os
        import numpy as np

        before = len(os.listdir("/proc/self/task"))
        import tensorhash
        table = tensorhash.HashSet(0, "int64", ())
        table.insert(np.arange(1_000_000))
        assert len(os.listdir("/proc/self/task")) == before
        """,
        TENSORHASH_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
    )


def test_several_threads_are_really_started(run_program):
    run_program(
        """
        import os
        import numpy as np

        before = len(os.listdir("/proc/self/task"))
        import tensorhash
        table = tensorhash.HashSet(0, "int64", ())
        for _ in range(20):
            table.insert(np.random.randint(0, 1 << 60, 500_000))
        more = len(os.listdir("/proc/self/task")) - before
        assert 1 <= more <= 3, more
        """,
        TENSORHASH_NUM_THREADS="4",
        OPENBLAS_NUM_THREADS="1",
    )


@pytest.mark.parametrize("dtype, width", [("int64", 1), ("int32", 3), ("uint8", 2), ("float64", 5)])
def test_rule_01_files_are_bit_identical_on_1_2_8_and_64_threads(tmp_path, dtype, width):
    def file_of(count):
        tensorhash.set_num_threads(count)
        rng = np.random.default_rng(5)
        table = tensorhash.HashMap(0, dtype, (width,), "float32", (3,))
        for _ in range(6):
            keys = rng.integers(0, 40, (30_000, width)).astype(dtype)
            values = rng.standard_normal((30_000, 3)).astype(np.float32)
            table.accumulate(keys, values)
            table.erase(rng.integers(0, 40, (10_000, width)).astype(dtype))
            table.insert_or_assign(keys[::3], values[::3])
        table.save(pathlib.Path(tmp_path) / f"{count}.thash")
        return (tmp_path / f"{count}.thash").read_bytes()

    first = file_of(1)
    for count in (2, 8, 64):
        assert file_of(count) == first


def test_show_config_names_version_and_threads(capsys):
    tensorhash.show_config()
    printed = capsys.readouterr().out
    assert tensorhash.__version__ in printed
    assert str(tensorhash.get_num_threads()) in printed
    assert "cpu" in printed.lower()
