"""The stock Python clients, and raw requests, as the tests use them."""
import threading, time

import confluent_kafka
import kafka

import cluster as lab
from cluster import probe

codec = probe.codec


def produce_all(bootstrap, topic, values, partition=0, key=None, **config):
    """Writes values with confluent-kafka; returns [(value, error or None, offset)] in the order of delivery."""
    outcomes = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **{k.replace("_", "."): v for k, v in config.items()}})
    for value in values:
        def done(error, message, value=value):
            outcomes.append((value, error and error.name(), message.offset()))
        while True:
            try:
                producer.produce(topic, value, partition=partition, key=key, on_delivery=done)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0, "records were left in the producer's queue"
    return outcomes


def read_all(bootstrap, topic, partition=0, start=0, isolation="read_committed", within=30):
    """Every record below the high watermark, read with confluent-kafka from `start`: [(offset, value)]."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
                                         "isolation.level": isolation, "enable.partition.eof": True})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, start)])
        records, end = [], time.monotonic() + within
        while time.monotonic() < end:
            message = consumer.poll(0.5)
            if message is None:
                continue
            if message.error():
                if message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    return records
                continue
            records.append((message.offset(), message.value()))
        raise AssertionError(f"no end of {topic}-{partition} within {within} s; {len(records)} records read")
    finally:
        consumer.close()


def read_all_kafka_python(bootstrap, topic, partition=0):
    """The same with kafka-python."""
    tp = kafka.TopicPartition(topic, partition)
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap.split(","), enable_auto_commit=False, group_id=None, consumer_timeout_ms=20000)
    try:
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        consumer.seek_to_beginning(tp)
        records = []
        while len(records) < end:
            batch = consumer.poll(timeout_ms=5000)
            assert batch, f"no more records at {len(records)} of {end}"
            records += [(r.offset, r.value) for r in batch[tp]]
        return records
    finally:
        consumer.close()


class Raw:
    """One raw connection to a broker: shows exactly what the broker answers, retries nothing."""

    def __init__(self, node, timeout=15):
        self.c = probe.Conn(node.address(), timeout)

    def produce(self, topic, value, partition=0, acks=-1, timeout=5000, v=8):
        """(error code, base offset, message)"""
        records = codec.batch(1, value=value, key=None, ts=int(time.time() * 1000))
        answer = self.c.call("Produce", v, {"TransactionalId": None, "Acks": acks, "TimeoutMs": timeout, "TopicData": [
            {"Name": topic, "PartitionData": [{"Index": partition, "Records": records}]}]})
        if isinstance(answer, str):
            return answer
        p = answer["Responses"][0]["PartitionResponses"][0]
        return p["ErrorCode"], p["BaseOffset"], p.get("ErrorMessage")

    def close(self):
        self.c.s.close()


class Writer(threading.Thread):
    """One raw acks=all (or 1) write after the other to the broker given, noting (seconds since start, code, offset, message)."""

    def __init__(self, node, topic, partition=0, acks=-1, timeout=1000, pause=0.1):
        super().__init__(daemon=True)
        self.node, self.topic, self.partition, self.acks, self.timeout, self.pause = node, topic, partition, acks, timeout, pause
        self.seen, self.ended, self.begun = [], threading.Event(), time.monotonic()
        self.start()

    def run(self):
        raw, n = None, 0
        while not self.ended.is_set():
            sent = time.monotonic() - self.begun
            try:
                raw = raw or Raw(self.node, self.timeout / 1000 + 5)
                answer = raw.produce(self.topic, b"w%d" % n, self.partition, self.acks, self.timeout)
            except OSError as error:
                answer = type(error).__name__
            if isinstance(answer, str):
                raw, answer = None, (answer, None, None)
            self.seen.append((sent, *answer))
            n += 1
            self.ended.wait(self.pause)
        raw and raw.close()

    def end(self):
        self.ended.set()
        self.join(20)
        return self.seen

    def codes(self):
        return [s[1] for s in self.seen]
