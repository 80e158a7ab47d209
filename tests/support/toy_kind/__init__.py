"""A made-up kind of machine: the CPU, by a C compiler that knows nothing about spans.

It is what a new kind takes: this record, and a folder each of schedules, backends and runtime.
"""

from te_select.base.kinds import Kind

HERE = "tests.support.toy_kind"
TOY = Kind(
    name="toy",
    tvm_kind="c",
    targets="toy",
    target=f"{HERE}.backends.target",
    schedule=f"{HERE}.schedules",
    builder=f"{HERE}.backends.builder",
    kernel=f"{HERE}.runtime.kernel:ToyKernel",
    sources=("te", "scheduled", "c"),
    requirements={"byte_orders": list},
    bench="te_select.bench.stage:Stage",
    peers="te_select.bench.peers:PEERS",
    roof="te_select.timing.roof:bandwidth",
    environment=f"{HERE}.backends.environment:environment",
)
