"""What ``te-select env`` says about toys."""


def environment() -> dict[str, dict[str, str]]:
    return {"toys": {"loops": "there"}}
