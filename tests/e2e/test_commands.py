"""The `minikafka` commands against a running cluster."""
import json, re, subprocess

import pytest
from cluster import BINARY, eventually


def run(c, *words, stdin=None, code=0):
    result = subprocess.run([BINARY, *words, "-b", c.bootstrap], capture_output=True, text=True, timeout=30, input=stdin)
    assert result.returncode == code, (words, result.returncode, result.stdout, result.stderr)
    return result


def test_topics_come_and_go(c, topic):
    run(c, "topic", "create", topic, "--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    assert topic in run(c, "topic", "list").stdout.split()
    text = run(c, "topic", "describe", topic).stdout
    assert re.search(rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: .*min.insync.replicas=2", text), text
    lines = [l for l in text.splitlines() if l.startswith("\t")]
    assert len(lines) == 3
    for line in lines:
        assert re.fullmatch(rf"\tTopic: {topic}\tPartition: \d\tLeader: \d\tReplicas: \d,\d,\d\tIsr: \d,\d,\d(\tElr: .*\tLastKnownElr: .*)?", line), line
    facts = json.loads(run(c, "topic", "describe", topic, "-o", "json").stdout)
    assert facts
    assert run(c, "topic", "create", topic, "--partitions", "1", code=1).stderr.count(topic)
    run(c, "topic", "delete", topic)
    eventually("the topic is gone", lambda: topic not in run(c, "topic", "list").stdout.split(), 5)
    run(c, "topic", "describe", topic, code=3)


def test_produce_and_consume(c, topic):
    run(c, "topic", "create", topic, "--partitions", "1", "--replication-factor", "3")
    run(c, "produce", topic, "--acks", "all", stdin="one\ntwo\nthree\n")
    assert run(c, "consume", topic, "--from", "beginning", "--exit-eof").stdout == "one\ntwo\nthree\n"
    assert run(c, "consume", topic, "--from", "1", "--exit-eof", "-f", "%p:%o %s\\n").stdout == "0:1 two\n0:2 three\n"


def test_cluster_info_and_api_versions(c):
    text = run(c, "cluster", "info").stdout
    for broker in c.brokers.values():
        assert broker.kafka in text
    versions = json.loads(run(c, "api-versions", "-o", "json").stdout)
    assert "Produce" in json.dumps(versions)


def test_log_dump_shows_the_epochs(c, topic):
    run(c, "topic", "create", topic, "--partitions", "1", "--replication-factor", "3")
    run(c, "produce", topic, stdin="x\n")
    broker = next(iter(c.brokers.values()))
    file = broker.data / f"{topic}-0" / "00000000000000000000.log"
    result = subprocess.run([BINARY, "log", "dump", "--json", file], capture_output=True, text=True, timeout=20)
    assert result.returncode == 0, result
    batch = json.loads(result.stdout.splitlines()[0]) if "\n{" in result.stdout else json.loads(result.stdout)
    assert "epoch" in json.dumps(batch).lower()


def test_nobody_there():
    result = subprocess.run([BINARY, "topic", "list", "-b", "127.0.0.1:1", "--timeout", "2s"], capture_output=True, text=True, timeout=30)
    assert result.returncode == 4 and "127.0.0.1:1" in result.stderr, result


def test_wrong_usage():
    assert subprocess.run([BINARY, "topic", "wander"], capture_output=True, timeout=10).returncode == 2
