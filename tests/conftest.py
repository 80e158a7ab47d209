import signal


def pytest_configure():
    # A shell ignores it for what it runs in the background, and children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
