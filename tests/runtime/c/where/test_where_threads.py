"""where() under sanitizers, called from 64 threads at once, while kernels are added."""

from pytest import mark

from tests.support import c_programs


@mark.slow
@mark.parametrize("sanitizers, threads", [("thread", 64), ("address,undefined", 4)])
def test_first_calls_of_many_threads_do_not_meet(tmp_path, sanitizers, threads):
    program = c_programs.sanitized("where_threads.c", tmp_path / "program", sanitizers)
    environment = {
        "TE_SELECT_NUM_THREADS": str(threads),
        "TE_SELECT_PROFILE": "bytes_per_thread=1024,stream_per_thread=1,stream_per_l3=0",
    }
    assert c_programs.output(program, **environment) == "done\n"
