"""Builds the kernels of where() into a cache, which later runs of the tests use again."""

import os

import filelock
import pytest

ROWS = ("w1_rows05", "w2_rows03", "w4_rows05", "w4_rows14", "w8_rows09", "w4_rows11")


@pytest.fixture(scope="session", autouse=True)
def family(request):
    """The folder of the cache. It holds the runs of all widths and some kernels of rows."""
    folder = request.config.cache.mkdir("where").absolute()
    folder.chmod(0o700)
    before = os.environ.get("TE_SELECT_CACHE_DIR")
    os.environ["TE_SELECT_CACHE_DIR"] = str(folder)
    from te_select.numpy_where.kernels import building, key, library
    from te_select.operator.family import parts
    from te_select.runtime.artifact import cache

    if library.extension is None:
        pytest.skip("the extension was not built")
    with filelock.FileLock(folder / "lock"):
        if cache.read(key.entry(key.WHOLE)) is None:
            runs = [name for name in parts() if "rows" not in name]
            cache.clear()  # entries that other sources have made
            cache.write(key.entry(key.WHOLE), building.image([*runs, *ROWS], "native"))
    assert library.fetch("w4")
    yield folder
    if before is None:
        del os.environ["TE_SELECT_CACHE_DIR"]
    else:
        os.environ["TE_SELECT_CACHE_DIR"] = before


@pytest.fixture(autouse=True)
def own_cache(family):
    """All tests share the cache of `family`."""
