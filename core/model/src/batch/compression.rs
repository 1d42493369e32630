//! The four codecs of record batches, each by a kept crate, with the output capped.

use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;

/// How the records of a batch are compressed (attribute bits 0-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CompressionType {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// snappy, read raw and in the xerial framing, written in the latter as Java does.
    Snappy,
    /// lz4 frames.
    Lz4,
    /// zstd.
    Zstd,
}

/// A payload does not decompress.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecompressError {
    /// The codec refuses it.
    #[error("records do not decompress as {codec}: {why}")]
    Damaged {
        /// The codec.
        codec: CompressionType,
        /// Its words.
        why: String,
    },
    /// It grows beyond the limit.
    #[error("records decompress to more than {0} bytes")]
    TooLarge(usize),
}

/// A word that names no codec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no compression type: none, gzip, snappy, lz4 or zstd is wanted")]
pub struct UnknownCompression(pub String);

const XERIAL_MAGIC: &[u8] = b"\x82SNAPPY\0";
const XERIAL_HEADER: usize = 16;
const XERIAL_BLOCK: usize = 32 << 10;

impl CompressionType {
    /// The codec in the attribute bits, or the number where there is no such codec.
    ///
    /// # Errors
    /// 5, 6 or 7.
    pub const fn from_attributes(attributes: i16) -> Result<CompressionType, u8> {
        match attributes & 7 {
            0 => Ok(CompressionType::None),
            1 => Ok(CompressionType::Gzip),
            2 => Ok(CompressionType::Snappy),
            3 => Ok(CompressionType::Lz4),
            4 => Ok(CompressionType::Zstd),
            other => Err(other as u8),
        }
    }

    /// Its attribute bits.
    pub const fn attributes(self) -> i16 {
        self as i16
    }

    /// Kafka's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            CompressionType::None => "none",
            CompressionType::Gzip => "gzip",
            CompressionType::Snappy => "snappy",
            CompressionType::Lz4 => "lz4",
            CompressionType::Zstd => "zstd",
        }
    }

    /// Compresses at the codec's own level.
    ///
    /// # Errors
    /// The codec's, which memory alone can cause.
    pub fn compress(self, plain: &[u8]) -> std::io::Result<Vec<u8>> {
        self.compress_at(None, plain)
    }

    /// Compresses at a level of the codec (gzip 1 to 9, zstd -7 to 22); snappy and lz4 have none here.
    ///
    /// # Errors
    /// The codec's: a level it does not have.
    pub fn compress_at(self, level: Option<i32>, plain: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            CompressionType::None => Ok(plain.to_vec()),
            CompressionType::Gzip => {
                let level = level.and_then(|level| u32::try_from(level).ok()).filter(|level| *level <= 9);
                let level = level.map_or_else(flate2::Compression::default, flate2::Compression::new);
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(plain)?;
                encoder.finish()
            }
            CompressionType::Snappy => xerial_compress(plain),
            CompressionType::Lz4 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(plain)?;
                encoder.finish().map_err(std::io::Error::other)
            }
            CompressionType::Zstd => {
                zstd::encode_all(plain, level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL))
            }
        }
    }

    /// Decompresses to at most `limit` bytes.
    ///
    /// # Errors
    /// The payload is damaged or grows beyond the limit.
    pub fn decompress(self, packed: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
        match self {
            CompressionType::None => Ok(packed.to_vec()),
            CompressionType::Gzip => self.read_capped(flate2::read::MultiGzDecoder::new(packed), limit),
            CompressionType::Snappy => self.snappy_decompress(packed, limit),
            CompressionType::Lz4 => self.read_capped(lz4_flex::frame::FrameDecoder::new(packed), limit),
            CompressionType::Zstd => {
                let decoder = zstd::Decoder::with_buffer(packed).map_err(|e| self.damaged(&e))?;
                self.read_capped(decoder, limit)
            }
        }
    }

    fn damaged(self, why: &dyn fmt::Display) -> DecompressError {
        DecompressError::Damaged { codec: self, why: why.to_string() }
    }

    fn read_capped(self, reader: impl Read, limit: usize) -> Result<Vec<u8>, DecompressError> {
        let mut out = Vec::new();
        reader.take(limit as u64 + 1).read_to_end(&mut out).map_err(|e| self.damaged(&e))?;
        if out.len() > limit { Err(DecompressError::TooLarge(limit)) } else { Ok(out) }
    }

    fn snappy_block(self, packed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), DecompressError> {
        let length = snap::raw::decompress_len(packed).map_err(|e| self.damaged(&e))?;
        if out.len() + length > limit {
            return Err(DecompressError::TooLarge(limit));
        }
        // A block cannot hold more than about 22 times its own length; what announces more is damaged, and gets no memory.
        if length > packed.len().saturating_mul(64) + 64 {
            return Err(self.damaged(&"a block announces more than it can hold"));
        }
        let at = out.len();
        out.resize(at + length, 0);
        snap::raw::Decoder::new().decompress(packed, &mut out[at..]).map_err(|e| self.damaged(&e))?;
        Ok(())
    }

    fn snappy_decompress(self, packed: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
        let mut out = Vec::new();
        if packed.len() < XERIAL_HEADER || !packed.starts_with(XERIAL_MAGIC) {
            self.snappy_block(packed, limit, &mut out)?;
            return Ok(out);
        }
        let mut rest = &packed[XERIAL_HEADER..];
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let block = after.get(..length).ok_or_else(|| self.damaged(&"a block is cut short"))?;
            self.snappy_block(block, limit, &mut out)?;
            rest = &after[length..];
        }
        if rest.is_empty() { Ok(out) } else { Err(self.damaged(&"a block is cut short")) }
    }
}

fn xerial_compress(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = XERIAL_MAGIC.to_vec();
    out.extend(1i32.to_be_bytes());
    out.extend(1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in plain.chunks(XERIAL_BLOCK) {
        let packed = encoder.compress_vec(block).map_err(std::io::Error::other)?;
        out.extend((packed.len() as u32).to_be_bytes());
        out.extend(packed);
    }
    Ok(out)
}

impl fmt::Display for CompressionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CompressionType {
    type Err = UnknownCompression;

    fn from_str(word: &str) -> Result<CompressionType, UnknownCompression> {
        use CompressionType::{Gzip, Lz4, None, Snappy, Zstd};
        [None, Gzip, Snappy, Lz4, Zstd]
            .into_iter()
            .find(|codec| codec.name() == word)
            .ok_or_else(|| UnknownCompression(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [CompressionType; 4] =
        [CompressionType::Gzip, CompressionType::Snappy, CompressionType::Lz4, CompressionType::Zstd];

    #[test]
    fn output_is_capped() {
        let plain = vec![7; 200_000];
        for codec in ALL {
            let packed = codec.compress(&plain).expect("compressed");
            assert_eq!(codec.decompress(&packed, 200_000).expect("fits"), plain, "{codec}");
            let refusal = codec.decompress(&packed, 199_999).expect_err("too large");
            assert_eq!(refusal, DecompressError::TooLarge(199_999), "{codec}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        for codec in ALL {
            let packed = codec.compress(b"some records, some more records").expect("compressed");
            codec.decompress(&packed[..packed.len() / 2], 1000).expect_err("cut short");
            codec.decompress(b"\xff\xff\xff\xff nonsense", 1000).expect_err("nonsense");
        }
    }

    #[test]
    fn snappy_is_read_without_its_framing_too() {
        let packed = snap::raw::Encoder::new().compress_vec(b"records").expect("compressed");
        assert_eq!(CompressionType::Snappy.decompress(&packed, 100).expect("plain"), b"records");
    }
}
