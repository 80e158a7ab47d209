import os
import signal
from pathlib import Path

import pytest

from te_select.runtime.cuda import driver

NO_TORCH = Path(__file__).parent / "support" / "no_torch"


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew, to be reviewed"
    )


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Tests neither find nor leave anything in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TE_SELECT_CACHE_DIR", str(tmp_path_factory.mktemp("te_select_cache")))
        yield


@pytest.fixture
def update_golden(request):
    """Whether the golden files are to be written."""
    return request.config.getoption("--update-golden")


def pytest_configure(config):
    # A shell ignores it for background jobs, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # If torch is installed, tvm_ffi imports it, which takes 2 s in each process of a test. The
    # workers of pytest-xdist need it: they hide it from their own children.
    if not getattr(config.option, "numprocesses", None):
        paths = [str(NO_TORCH), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def pytest_collection_modifyitems(items):
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (missing := driver.missing()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=missing))
