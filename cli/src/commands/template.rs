//! The template of `consume -f`, with kcat's letters.

use minikafka_client::ConsumerRecord;

/// A template, cut into pieces once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Key,
    Value,
    KeyLength,
    ValueLength,
    Timestamp,
    LeaderEpoch,
    Headers,
}

impl Template {
    /// Cuts a template.
    ///
    /// # Errors
    /// A letter after `%` or `\` that means nothing.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut plain: Vec<u8> = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let piece = match c {
                '%' => match chars.next() {
                    Some('%') => None,
                    Some(letter) => {
                        Some(piece(letter).ok_or_else(|| format!("%{letter} means nothing in a template"))?)
                    }
                    None => return Err("a template cannot end with %".to_owned()),
                },
                '\\' => {
                    let escaped = match chars.next() {
                        Some('n') => b'\n',
                        Some('t') => b'\t',
                        Some('r') => b'\r',
                        Some('0') => 0,
                        Some('\\') => b'\\',
                        Some(other) => return Err(format!("\\{other} means nothing in a template")),
                        None => return Err("a template cannot end with \\".to_owned()),
                    };
                    plain.push(escaped);
                    continue;
                }
                _ => {
                    plain.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
            };
            match piece {
                None => plain.push(b'%'),
                Some(piece) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(piece);
                }
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Template(pieces))
    }

    /// The bytes for one record. A missing key or value is nothing; its length is -1.
    pub(crate) fn fill(&self, record: &ConsumerRecord) -> Vec<u8> {
        let mut out = Vec::new();
        let length =
            |bytes: Option<&[u8]>| bytes.map_or_else(|| "-1".to_owned(), |bytes| bytes.len().to_string());
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Topic => out.extend_from_slice(record.topic.as_bytes()),
                Piece::Partition => out.extend_from_slice(record.partition.to_string().as_bytes()),
                Piece::Offset => out.extend_from_slice(record.offset.to_string().as_bytes()),
                Piece::Key => out.extend_from_slice(key.unwrap_or_default()),
                Piece::Value => out.extend_from_slice(value.unwrap_or_default()),
                Piece::KeyLength => out.extend_from_slice(length(key).as_bytes()),
                Piece::ValueLength => out.extend_from_slice(length(value).as_bytes()),
                Piece::Timestamp => out.extend_from_slice(record.timestamp.0.to_string().as_bytes()),
                Piece::LeaderEpoch => {
                    let epoch =
                        record.leader_epoch.map_or_else(|| "-1".to_owned(), |epoch| epoch.to_string());
                    out.extend_from_slice(epoch.as_bytes());
                }
                Piece::Headers => {
                    for (index, header) in record.headers.iter().enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        out.extend_from_slice(&header.key);
                        out.push(b'=');
                        out.extend_from_slice(header.value.as_deref().unwrap_or(b"NULL"));
                    }
                }
            }
        }
        out
    }
}

fn piece(letter: char) -> Option<Piece> {
    Some(match letter {
        't' => Piece::Topic,
        'p' => Piece::Partition,
        'o' => Piece::Offset,
        'k' => Piece::Key,
        's' => Piece::Value,
        'K' => Piece::KeyLength,
        'S' => Piece::ValueLength,
        'T' => Piece::Timestamp,
        'e' => Piece::LeaderEpoch,
        'h' => Piece::Headers,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use minikafka_client::Header;
    use minikafka_model::{LeaderEpoch, Offset, PartitionIndex, WallMs};

    use super::*;

    fn record() -> ConsumerRecord {
        ConsumerRecord {
            topic: "orders".into(),
            partition: PartitionIndex(2),
            offset: Offset(17),
            timestamp: WallMs(5),
            leader_epoch: Some(LeaderEpoch(3)),
            key: None,
            value: Some("wörld".into()),
            headers: vec![
                Header { key: "a".into(), value: Some("1".into()) },
                Header { key: "b".into(), value: None },
            ],
        }
    }

    fn filled(template: &str) -> String {
        String::from_utf8(Template::parse(template).expect("good").fill(&record())).expect("text")
    }

    #[test]
    fn every_letter_has_its_meaning() {
        assert_eq!(filled("%t %p:%o %k|%s\\n"), "orders 2:17 |wörld\n");
        assert_eq!(filled("%K %S %T %e %h"), "-1 6 5 3 a=1,b=NULL");
        assert_eq!(filled("100%% \\\\ \\t."), "100% \\ \t.");
    }

    #[test]
    fn letters_without_meaning_are_refused() {
        for wrong in ["%q", "%", "\\q", "\\"] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
