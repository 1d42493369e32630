"""`minikafka up`: what it prints, what it refuses, what it leaves behind."""
import json, os, pathlib, re, signal, socket, subprocess, time

import clients
from cluster import BINARY, Cluster, eventually, free_base


def up(*words, timeout=20):
    return subprocess.run([BINARY, "up", *words], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def test_ready_lists_every_process(c):
    ready = next(e for e in c.events if e["event"] == "ready")
    assert [(p["role"], p["id"]) for p in sorted(ready["processes"], key=lambda p: p["id"])] == [("broker", 1), ("broker", 2), ("broker", 3), ("controller", 101), ("controller", 102), ("controller", 103)]
    for process in ready["processes"]:
        assert os.path.exists(f"/proc/{process['pid']}") and pathlib.Path(process["data"]).is_dir()
    assert [n.kafka for n in c.brokers.values()] == [f"127.0.0.1:{c.base + 2 * i}" for i in range(3)]
    for i, node in enumerate(c.brokers.values()):
        assert node.http == f"127.0.0.1:{c.base + 200 + i}"
    for i, node in enumerate(c.controllers.values()):
        assert node.http == f"127.0.0.1:{c.base + 300 + i}"


def test_fetcher_threads_per_source(c):
    """num.replica.fetchers (1) threads for each of the two other brokers, once there is something to fetch."""
    c.create("threads", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])

    def names():
        tasks = pathlib.Path(f"/proc/{c.brokers[1].pid}/task")
        return sorted(n for n in ((t / "comm").read_text().strip() for t in tasks.iterdir()) if n.startswith("fetcher-"))
    eventually("a thread per source", lambda: names() == ["fetcher-2-0", "fetcher-3-0"], 5)


def test_a_port_in_use_is_named(tmp_path):
    base = free_base()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", base + 2))
        taken.listen()
        result = up("--base-port", str(base), "--data-dir", str(tmp_path / "d"))
    assert result.returncode != 0 and str(base + 2) in result.stderr, result


def test_a_directory_in_use_or_foreign_is_refused(c, tmp_path):
    result = up("--base-port", str(free_base()), "--data-dir", str(c.data))
    assert result.returncode != 0 and str(c.data) in result.stderr, result
    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "cat.jpg").write_text("a cat")
    result = up("--base-port", str(free_base()), "--data-dir", str(foreign), "--fresh")
    assert result.returncode != 0 and (foreign / "cat.jpg").read_text() == "a cat", "nothing of somebody else's is removed"


def test_a_bad_config_is_named_with_its_neighbour(tmp_path):
    result = up("--base-port", str(free_base()), "--data-dir", str(tmp_path / "d"), "-X", "min.insync.replica=2")
    assert result.returncode != 0 and "min.insync.replicas" in result.stderr, result


def test_children_end_with_their_supervisor(tmp_path):
    with Cluster(data=tmp_path) as running:
        pids = [n.pid for n in running.nodes]
        running.supervisor.kill()
        running.supervisor.wait()
        for node in running.nodes:
            node.gone(20)
    assert len(pids) == 6


def test_ctrl_c_stops_brokers_first_and_a_restart_finds_everything(tmp_path, topic):
    with Cluster(data=tmp_path) as running:
        running.create(topic, [[1, 2, 3]], min_insync_replicas=2)
        clients.produce_all(running.bootstrap, topic, [b"%d" % n for n in range(100)], acks="all")
        running.supervisor.send_signal(signal.SIGINT)
        assert running.supervisor.wait(45) in (0, 130)
        for broker in running.brokers.values():
            assert (broker.data / ".kafka_cleanshutdown").exists(), f"{broker} stopped in order"
        running.events.clear()
        running.up()
        assert [v for _, v in clients.read_all(running.bootstrap, topic)] == [b"%d" % n for n in range(100)]


def test_two_threads_per_source_when_configured(tmp_path):
    with Cluster(data=tmp_path, config={"num.replica.fetchers": 2}) as running:
        running.create("threads", [[2, 1], [2, 1], [3, 1], [3, 1]])

        def names():
            tasks = pathlib.Path(f"/proc/{running.brokers[1].pid}/task")
            return sorted(n for n in ((t / "comm").read_text().strip() for t in tasks.iterdir()) if n.startswith("fetcher-"))
        eventually("two threads per source", lambda: names() == ["fetcher-2-0", "fetcher-2-1", "fetcher-3-0", "fetcher-3-1"], 5)
