"""Stock clients: write with each acks, read everything back, from librdkafka and kafka-python, and kcat where it is installed."""
import shutil, subprocess

import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import clients

ALL = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_writes_and_both_read(c, topic, acks):
    c.create(topic, ALL)
    values = [b"%d" % n for n in range(500)]
    outcomes = clients.produce_all(c.bootstrap, topic, values, partition=1, acks=acks, linger_ms=5)
    assert [o for o in outcomes if o[1]] == []
    assert [v for _, v in clients.read_all(c.bootstrap, topic, 1)] == values
    assert [v for _, v in clients.read_all_kafka_python(c.bootstrap, topic, 1)] == values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compression_codecs(c, topic, codec):
    c.create(topic, ALL[:1])
    values = [b"value %d " % n * 20 for n in range(200)]
    outcomes = clients.produce_all(c.bootstrap, topic, values, acks="all", compression_type=codec, linger_ms=20, enable_idempotence=True)
    assert [o for o in outcomes if o[1]] == []
    assert [v for _, v in clients.read_all(c.bootstrap, topic)] == values


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_kafka_python_writes(c, topic, acks):
    c.create(topic, ALL[:1])
    producer = kafka.KafkaProducer(bootstrap_servers=c.bootstrap.split(","), acks=acks, enable_idempotence=acks == "all")
    futures = [producer.send(topic, b"%d" % n, partition=0) for n in range(300)]
    producer.flush(30)
    assert all(f.succeeded() for f in futures)
    producer.close(5)
    assert [v for _, v in clients.read_all(c.bootstrap, topic)] == [b"%d" % n for n in range(300)]


def test_a_stock_script_creates_writes_and_reads(c, topic):
    """The issue's own words: create a 3x3 topic, write with acks=all and idempotence, read all back."""
    admin = AdminClient({"bootstrap.servers": c.bootstrap})
    for future in admin.create_topics([NewTopic(topic, 3, 3, config={"min.insync.replicas": "2"})]).values():
        future.result(15)
    values = [b"%d" % n for n in range(3000)]
    for partition in range(3):
        part = values[partition::3]
        outcomes = clients.produce_all(c.bootstrap, topic, part, partition=partition, acks="all", enable_idempotence=True)
        assert [o for o in outcomes if o[1]] == []
        assert [v for _, v in clients.read_all(c.bootstrap, topic, partition)] == part
    facts = admin.list_topics(topic, timeout=10).topics[topic]
    assert sorted(facts.partitions) == [0, 1, 2] and all(len(p.replicas) == 3 for p in facts.partitions.values())
    for future in admin.delete_topics([topic]).values():
        future.result(15)


def test_lookup_by_time(c, topic):
    c.create(topic, ALL[:1])
    producer = kafka.KafkaProducer(bootstrap_servers=c.bootstrap.split(","))
    stamps = [1_700_000_000_000 + 1000 * n for n in range(50)]
    for n, stamp in enumerate(stamps):
        producer.send(topic, b"%d" % n, partition=0, timestamp_ms=stamp).get(10)
    producer.close(5)
    tp = kafka.TopicPartition(topic, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=c.bootstrap.split(","), group_id=None, enable_auto_commit=False)
    found = consumer.offsets_for_times({tp: stamps[20] - 1})[tp]
    assert (found.offset, found.timestamp) == (20, stamps[20])
    assert consumer.offsets_for_times({tp: stamps[-1] + 1})[tp] is None
    assert (consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]) == (0, 50)
    consumer.close()


def test_a_large_record_replicates_and_stays_in_the_isr(c, topic):
    """5 MB with message.max.bytes raised and replica.fetch.max.bytes at its 1 MiB: the first batch is always served whole (KIP-74)."""
    c.create(topic, [[1, 2, 3]], max_message_bytes=6_000_000, min_insync_replicas=3)
    outcomes = clients.produce_all(c.bootstrap, topic, [b"x" * 5_000_000], acks="all", message_max_bytes=6_000_000)
    assert outcomes[0][1] is None
    assert c.partition(topic)["isr"] == [1, 2, 3]
    assert len(clients.read_all(c.bootstrap, topic)[0][1]) == 5_000_000


@pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed: this client is not tested here")
def test_kcat(c, topic):
    listing = subprocess.run(["kcat", "-b", c.bootstrap, "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    assert " 3 brokers:" in listing
    c.create(topic, ALL)
    subprocess.run(["kcat", "-b", c.bootstrap, "-P", "-t", topic, "-p", "2", "-X", "acks=all"], input="a\nb\nc\n", text=True, timeout=20, check=True)
    read = subprocess.run(["kcat", "-b", c.bootstrap, "-C", "-t", topic, "-p", "2", "-o", "beginning", "-e", "-q"], capture_output=True, text=True, timeout=20, check=True)
    assert read.stdout == "a\nb\nc\n"
