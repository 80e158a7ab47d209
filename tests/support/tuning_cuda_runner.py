"""The run worker on a stand-in for the driver; its device computes 4-byte elements."""

from te_select.tuning.measuring import run_worker
from tests.support import cuda_standin

RIGHT_WIDTH = 4


class Worker(run_worker.Worker):
    def _hold(self, problem):
        fake = cuda_standin.fake_library()
        fake.fake_reset()
        fake.fake_device(90)
        if problem.workload.element.width == RIGHT_WIDTH:
            fake.fake_runner(
                b"te_select_kernel_0", cuda_standin.runners((problem.workload,))["run_0"]
            )
        super()._hold(problem)
