"""What the driver says of the devices, without one."""

import pytest

from te_select.runtime.call.cuda import driver


def test_driver_that_shows_no_device_names_the_variable(monkeypatch):
    monkeypatch.setattr(driver, "call", lambda *_: None)  # so the count stays 0
    with pytest.raises(driver.CudaError, match="CUDA_VISIBLE_DEVICES"):
        driver.devices()
