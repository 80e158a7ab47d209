"""What ``te-select env`` says about toys."""


def environment():
    return {"toys": {"loops": "there"}}
