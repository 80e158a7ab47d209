"""Calls between the operations of torch, in processes that must neither hang nor crash."""

from pytest import importorskip, mark

from tests.support import python

importorskip("torch")
SETUP = """
import os, signal, threading
import numpy as np, torch, te_select

torch.set_num_threads(2)
N = 1 << 20
a, b, c = (torch.rand(N) for _ in range(3))
cond = np.arange(N) % 3 == 0
x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
expected = np.where(cond, x, y)

def count():
    return len(os.listdir("/proc/self/task"))

def loop(rounds=60):
    out = np.empty_like(x)
    for _ in range(rounds):
        torch.add(a, b, out=c)
        out[:] = 7
        torch.add(a, b, out=c)
        te_select.where(cond, x, y, out=out)
        assert np.array_equal(out, expected)

def child():
    done = os.fork()
    if not done:
        te_select.where(cond, x, y)
        assert np.array_equal(te_select.where(cond, x, y), expected)
        os._exit(0)
    assert os.waitpid(done, 0)[1] == 0

torch.add(a, b, out=c)
te_select.where(cond, x, y)
"""
CASES = {
    "loop": """
before = count()
loop(300)
assert count() <= before + 1, (before, count())
""",
    "forks": """
child()
loop()
child()
loop()
child()
""",
    "a hundred threads": """
loop()
before = count()
failed = []

def calls():
    try:
        for _ in range(3):
            assert np.array_equal(te_select.where(cond, x, y), expected)
    except BaseException as e:
        failed.append(e)

threads = [threading.Thread(target=calls) for _ in range(100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed
assert count() <= before + 1, (before, count())
loop()
""",
    "other numbers of threads": """
for number in (1, 2, 1, 3, 2):
    torch.set_num_threads(number)
    loop()
    assert torch.get_num_threads() == number
""",
    "exceptions of handlers": """
class Stop(Exception):
    pass

def stop(*_):
    raise Stop

signal.signal(signal.SIGALRM, stop)
stopped = 0
while stopped < 20:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.003)
        loop(10_000)
    except Stop:
        stopped += 1
loop()
""",
    "several runtimes": """
from scipy import linalg
from sklearn.cluster import KMeans

points = np.random.default_rng(0).random((2000, 8))
for number in (2, 1, 2):
    torch.set_num_threads(number)
    child()
    KMeans(4, n_init=1, random_state=0).fit(points)
    linalg.lu(points[:500] @ points[:500].T)
    loop(20)
child()
""",
}


@mark.parametrize("case", CASES)
def test_calls_beside_torch_are_right(case):
    if "sklearn" in CASES[case]:
        importorskip("sklearn")
    python(SETUP + CASES[case], timeout=200, PYTHONPATH="")


def test_team_can_be_turned_off():
    code = "loop()\nassert not te_select.where.explain(cond, x, y).by_team"
    python(SETUP + code, timeout=200, PYTHONPATH="", TE_SELECT_TEAM="0")
