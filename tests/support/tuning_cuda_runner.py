"""The run worker on a stand-in for the driver; its device computes 4-byte elements."""

from te_select.operator.workload import Workload
from te_select.tuning.measuring import run_worker
from te_select.tuning.measuring.serve import serve
from tests.support import cuda_standin

RIGHT_WIDTH = 4


class Runner(run_worker.Runner):
    def prepare(self, message):
        fake = cuda_standin.fake_library()
        fake.fake_reset()
        fake.fake_device(90)
        workload = Workload.from_json(message["workload"])
        if workload.element.width == RIGHT_WIDTH:
            fake.fake_runner(b"te_select_kernel_0", cuda_standin.runner(workload))
        return super().prepare(message)


if __name__ == "__main__":
    runner = Runner()
    serve({"prepare": runner.prepare, "measure": runner.measure, "interleave": runner.interleave})
