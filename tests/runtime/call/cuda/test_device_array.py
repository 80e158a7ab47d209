"""Arrays of a device as DLPack capsules: who keeps their memory."""

import gc
import weakref

from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.runtime.call.cuda.device_array import DeviceArray


class Memory:
    """Stands in for memory of a device."""

    address, device = 4096, 0


def test_capsule_keeps_the_memory_without_the_array():
    array = DeviceArray(Memory(), ELEMENT_TYPES["float32"], (2, 3))
    memory = weakref.ref(array.memory)
    capsule = array.__dlpack__()
    del array
    gc.collect()
    assert memory() is not None
    del capsule
    gc.collect()
    assert memory() is None
