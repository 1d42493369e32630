"""One cluster at a time, shared by the tests of a file."""
import itertools, os, pathlib, sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cluster as lab  # noqa: E402

names = itertools.count(1)


@pytest.fixture(scope="module")
def c():
    """Three controllers and three brokers with the lab's timers."""
    with lab.Cluster() as running:
        yield running


@pytest.fixture
def whole(c):
    """The shared cluster, whole again after the test: what was killed is started, what was paused goes on, faults are gone."""
    yield c
    heal(c)


def heal(c):
    for node in c.nodes:
        if node.alive():
            node.go_on()
        else:
            node.start()
    for node in c.brokers.values():
        node.ready()
        node.post("/v1/faults", {}, "DELETE") if c.config.get("minikafka.lab.faults.enable") else None


@pytest.fixture
def topic(request):
    """A fresh topic name that tells its test."""
    return f"{request.node.name.removeprefix('test_').split('[')[0][:60]}-{next(names)}"


def pytest_report_header():
    return f"binary: {os.path.relpath(lab.BINARY, lab.ROOT)}"
