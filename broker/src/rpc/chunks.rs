//! Cuts an answer into messages: at most 1 MiB of record bytes in each, unless a single batch is larger.

use minikafka_proto::replica::{FetchResponse, PartitionData};

/// Record bytes in one message.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The messages of one answer; the last one says so.
pub(crate) fn messages(sequence: u64, partitions: Vec<PartitionData>) -> Vec<FetchResponse> {
    let empty = || FetchResponse { sequence, ..FetchResponse::default() };
    let mut done = Vec::new();
    let mut present = empty();
    let mut bytes = 0;
    for mut partition in partitions {
        let batches = std::mem::take(&mut partition.batches);
        let head = PartitionData { batches: Vec::new(), ..partition };
        let mut part = head.clone();
        for batch in batches {
            if bytes > 0 && bytes + batch.len() > MOST_BYTES {
                if !part.batches.is_empty() {
                    present.partitions.push(std::mem::replace(&mut part, head.clone()));
                }
                done.push(std::mem::replace(&mut present, empty()));
                bytes = 0;
            }
            bytes += batch.len();
            part.batches.push(batch);
        }
        present.partitions.push(part);
    }
    present.last = true;
    done.push(present);
    done
}

/// Bytes of records in some partitions.
#[cfg(test)]
fn record_bytes(message: &FetchResponse) -> usize {
    message.partitions.iter().flat_map(|it| &it.batches).map(bytes::Bytes::len).sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn partition(number: i32, sizes: &[usize]) -> PartitionData {
        let batches = sizes.iter().map(|size| Bytes::from(vec![0; *size])).collect();
        PartitionData { partition: number, batches, high_watermark: 7, ..PartitionData::default() }
    }

    #[test]
    fn no_message_is_larger_than_it_must_be() {
        let big = MOST_BYTES / 2 + 1;
        let answer =
            vec![partition(0, &[big, big, 10]), partition(1, &[]), partition(2, &[5 * MOST_BYTES, 10])];
        let messages = messages(4, answer);
        assert_eq!(
            messages.iter().map(record_bytes).collect::<Vec<_>>(),
            [big, big + 10, 5 * MOST_BYTES, 10]
        );
        assert_eq!(messages.iter().map(|m| m.last).collect::<Vec<_>>(), [false, false, false, true]);
        assert!(messages.iter().all(|m| m.sequence == 4));
        let parts: Vec<Vec<i32>> =
            messages.iter().map(|m| m.partitions.iter().map(|p| p.partition).collect()).collect();
        assert_eq!(parts, [vec![0], vec![0, 1], vec![2], vec![2]]);
        assert!(messages.iter().flat_map(|m| &m.partitions).all(|p| p.high_watermark == 7));
        let nothing = super::messages(5, vec![]);
        assert!(nothing.len() == 1 && nothing[0].last);
    }
}
