import signal

import pytest

from te_select.runtime.cuda import driver


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew, to be reviewed"
    )


@pytest.fixture
def update_golden(request):
    """Whether the golden files are to be written."""
    return request.config.getoption("--update-golden")


def pytest_configure():
    # A shell ignores it for what it runs in the background, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (missing := driver.missing()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=missing))
