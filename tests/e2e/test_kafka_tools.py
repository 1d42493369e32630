"""Kafka 4.4's own tools, by their Maven coordinates, against our cluster."""
import fcntl, json, pathlib, re, shutil, subprocess

import pytest
from cluster import ROOT, eventually

JARS = ROOT / "target" / "kafka-tools"
TOOLS = {"kafka-topics.sh": "org.apache.kafka.tools.TopicCommand", "kafka-verifiable-producer.sh": "org.apache.kafka.tools.VerifiableProducer",
         "kafka-producer-perf-test.sh": "org.apache.kafka.tools.ProducerPerformance", "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
         "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand"}

pytestmark = pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("java")), reason="Java or Maven is not installed: Kafka's own tools are not tried")


@pytest.fixture(scope="session")
def jars():
    JARS.mkdir(parents=True, exist_ok=True)
    with open(JARS / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (JARS / "complete").exists():
            subprocess.run(["mvn", "-q", "-B", "-f", ROOT / "tests/kafka-tools/pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"], check=True, timeout=600)
            (JARS / "complete").touch()
    return f"{JARS}/*"


def tool(jars, name, *words, timeout=90):
    return subprocess.run(["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars, TOOLS[name], *words], capture_output=True, text=True, timeout=timeout)


def test_topics_create_describe_delete(jars, c, topic):
    made = tool(jars, "kafka-topics.sh", "--bootstrap-server", c.bootstrap, "--create", "--topic", topic, "--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    assert (made.returncode, made.stdout.strip()) == (0, f"Created topic {topic}."), made
    told = tool(jars, "kafka-topics.sh", "--bootstrap-server", c.bootstrap, "--describe", "--topic", topic)
    assert told.returncode == 0, told
    lines = told.stdout.rstrip().splitlines()
    assert re.fullmatch(rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 3\tConfigs: .*min.insync.replicas=2.*", lines[0]), told.stdout
    assert len(lines) == 4 and all(re.match(rf"\tTopic: {topic}\tPartition: {p}\tLeader: \d\tReplicas: \d,\d,\d\tIsr: \d,\d,\d", lines[p + 1]) for p in range(3)), told.stdout
    assert tool(jars, "kafka-topics.sh", "--bootstrap-server", c.bootstrap, "--delete", "--topic", topic).returncode == 0


def test_the_verifiable_producer(jars, c, topic):
    c.create(topic, [[1, 2, 3]], min_insync_replicas=2)
    ran = tool(jars, "kafka-verifiable-producer.sh", "--bootstrap-server", c.bootstrap, "--topic", topic, "--max-messages", "2000", "--acks", "-1")
    facts = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert len([f for f in facts if f["name"] == "producer_send_success"]) == 2000, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert facts[-1]["name"] == "tool_data" and facts[-1]["acked"] == 2000
    ends = tool(jars, "kafka-get-offsets.sh", "--bootstrap-server", c.bootstrap, "--topic", topic)
    assert ends.stdout.strip() == f"{topic}:0:2000", ends


def test_the_producer_perf_test(jars, c, topic):
    c.create(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas=2)
    ran = tool(jars, "kafka-producer-perf-test.sh", "--topic", topic, "--num-records", "50000", "--record-size", "1024", "--throughput", "-1",
               "--producer-props", f"bootstrap.servers={c.bootstrap}", "acks=all")
    assert ran.returncode == 0 and re.search(r"^50000 records sent", ran.stdout, re.M), ran


def test_broker_api_versions(jars, c):
    ran = tool(jars, "kafka-broker-api-versions.sh", "--bootstrap-server", c.bootstrap)
    assert ran.returncode == 0 and ran.stdout.count("Produce(0)") == 3, ran
