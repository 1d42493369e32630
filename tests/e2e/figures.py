#!/usr/bin/env python3
"""The figures of the README, measured on this machine: time to ready, time without an acknowledged write, records per second, memory.

    target/e2e-venv/bin/python tests/e2e/figures.py [--runs 5] [ready|gap|rate|memory ...]

Prints each figure's minimum, median and maximum. Never a test: the machines are shared."""
import argparse, pathlib, statistics, sys, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import confluent_kafka

import clients
from cluster import Cluster, eventually

DEFAULTS = {"broker.session.timeout.ms": 9000, "broker.heartbeat.interval.ms": 2000, "replica.lag.time.max.ms": 30000}


def show(what, values, unit):
    print(f"{what}: min {min(values):.3g}, median {statistics.median(values):.3g}, max {max(values):.3g} {unit} (n={len(values)})", flush=True)


def ready(runs):
    values = []
    for _ in range(runs):
        with Cluster() as c:
            values.append(c.ready_after)
    show("fresh directory to ready (3 controllers, 3 brokers)", values, "s")


def gap_of(c, stop, topic):
    """Longest time between two acknowledged writes around the loss of the leader: one idempotent record each 10 ms."""
    c.create(topic, [[1, 2, 3]], min_insync_replicas=2)
    acks, ended, failed = [], threading.Event(), []

    def write():
        producer = confluent_kafka.Producer({"bootstrap.servers": c.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 0})
        while not ended.is_set():
            producer.produce(topic, b"x" * 100, partition=0, on_delivery=lambda error, _: failed.append(error) if error else acks.append(time.monotonic()))
            producer.poll(0.01)
        producer.flush(60)

    writer = threading.Thread(target=write)
    writer.start()
    eventually("acknowledged writes", lambda: len(acks) > 100, 20)
    leader = c.brokers[c.partition(topic)["leader"]]
    before, lost = len(acks), time.monotonic()
    stop(leader)
    eventually("writes again", lambda: acks[-1] > lost + 0.5 and len(acks) > before + 200 and max(gaps(acks, lost)) < time.monotonic() - lost, 60)
    ended.set()
    writer.join()
    assert not failed, failed
    leader.gone(30)
    leader.start()
    leader.ready(60)
    eventually("the ISR is whole", lambda: c.partition(topic)["isr"] == [1, 2, 3], 60)
    return max(gaps(acks, lost))


def gaps(acks, since):
    near = [a for a in acks if a > since - 1]
    return [b - a for a, b in zip(near, near[1:])] or [0]


def gap(runs):
    with Cluster(config=DEFAULTS) as c:
        show("without an acknowledged write, SIGTERM of the leader", [gap_of(c, lambda n: n.signal(15), f"term-{i}") for i in range(runs)], "s")
        show("without an acknowledged write, kill -9 of the leader (session 9 s)", [gap_of(c, lambda n: n.signal(9), f"kill-{i}") for i in range(runs)], "s")


def rate(runs, records=300_000):
    with Cluster(config=DEFAULTS) as c:
        values = []
        for run in range(runs + 1):
            topic = c.create(f"rate-{run}", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas=2)
            producer = confluent_kafka.Producer({"bootstrap.servers": c.bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5, "batch.size": 1 << 17})
            value, failed, begun = b"x" * 1024, [], time.monotonic()
            for n in range(records):
                while True:
                    try:
                        producer.produce(topic, value, partition=n % 3, on_delivery=lambda error, _: error and failed.append(error))
                        break
                    except BufferError:
                        producer.poll(0.05)
            producer.flush(120)
            assert not failed, failed[:3]
            values.append(records / (time.monotonic() - begun))
        show("1 KiB records, acks=all, idempotent, 3 partitions, confluent-kafka", values[1:], "records/s (the first run, a warm-up, is left out)")


def memory(runs):
    with Cluster() as c:
        values = [int(next(l for l in open(f"/proc/{b.pid}/status") if l.startswith("VmRSS")).split()[1]) / 1024 for b in c.brokers.values()]
        show("resident memory of an idle broker", values, "MiB")
        values = [int(next(l for l in open(f"/proc/{b.pid}/status") if l.startswith("VmRSS")).split()[1]) / 1024 for b in c.controllers.values()]
        show("resident memory of an idle controller", values, "MiB")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("figures", nargs="*", default=["ready", "memory", "rate", "gap"])
    a = p.parse_args()
    for name in a.figures:
        globals()[name](a.runs)
