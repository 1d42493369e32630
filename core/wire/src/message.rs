//! Whole messages: bodies with their headers, one frame at a time, for both ends of a connection.

use bytes::Bytes;
use minikafka_model::ErrorCode;

use crate::api::{Api, ApiKey, Request, Response};
use crate::codec::Codec;
use crate::messages::api_versions::{ApiVersion, ApiVersionsResponse};
use crate::table::Type;
use crate::{Frame, Problem, Reader, Versions, WireError, Writer};

/// A request frame whose header was read: the broker's first look, which decides who handles it.
#[derive(Debug, Clone)]
pub struct RequestFrame {
    /// The API; it is served.
    pub key: ApiKey,
    /// Its version; it is supported.
    pub version: i16,
    /// Chosen by the client, repeated in the answer.
    pub correlation_id: i32,
    /// What the client calls itself; bytes that are not UTF-8 became U+FFFD.
    pub client_id: Option<String>,
    frame: Bytes,
    body_at: usize,
}

/// A request that cannot be handed to a handler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// The header is broken: close the connection.
    #[error("request header: {0}")]
    Malformed(#[from] WireError),
    /// No such API here: close the connection, as Kafka does.
    #[error("API key {key} version {version} is not served{}", of_client(client_id.as_deref()))]
    UnknownApi {
        /// The number asked for.
        key: i16,
        /// The version asked for.
        version: i16,
        /// What the client calls itself, as far as the header could be read.
        client_id: Option<String>,
    },
    /// The API is served, but not in this version: close the connection, as Kafka does.
    #[error("{key} version {version} is not supported, only {supported}{}", of_client(client_id.as_deref()))]
    UnsupportedVersion {
        /// The API.
        key: ApiKey,
        /// The version asked for.
        version: i16,
        /// The versions that are served.
        supported: Versions,
        /// What the client calls itself, as far as the header could be read.
        client_id: Option<String>,
    },
    /// ApiVersions in a version that is not known: answer with [`encode_api_versions_fallback`]; the connection stays.
    #[error("ApiVersions version {version} is not supported, only {}", ApiKey::ApiVersions.api().versions)]
    ApiVersionsFallback {
        /// The version asked for.
        version: i16,
        /// To be repeated in the answer.
        correlation_id: i32,
    },
}

fn of_client(client_id: Option<&str>) -> String {
    client_id.map_or_else(String::new, |id| format!(" (client id {id:?})"))
}

impl RequestFrame {
    /// Reads the header of a frame (without its four length bytes) and looks the API up in the table of what is served.
    ///
    /// # Errors
    /// [`RequestRefusal`]: what to do instead of handling it.
    pub fn parse(frame: Bytes) -> Result<RequestFrame, RequestRefusal> {
        let header = RequestHeader::read(&frame)?;
        let RequestHeader { key: code, version, correlation_id, .. } = header;
        let Some(api) = ApiKey::from_code(code).map(ApiKey::api).filter(|api| api.served) else {
            return Err(RequestRefusal::UnknownApi { key: code, version, client_id: header.client_id });
        };
        if !api.versions.contains(version) {
            return Err(match api.key {
                ApiKey::ApiVersions => RequestRefusal::ApiVersionsFallback { version, correlation_id },
                key => {
                    let supported = api.versions;
                    RequestRefusal::UnsupportedVersion {
                        key,
                        version,
                        supported,
                        client_id: header.client_id,
                    }
                }
            });
        }
        let RequestHeader { client_id, body_at, .. } = header;
        Ok(RequestFrame { key: api.key, version, correlation_id, client_id, frame, body_at })
    }

    /// The body, not decoded.
    pub fn body(&self) -> Bytes {
        self.frame.slice(self.body_at..)
    }

    /// Reads the body. Record sets in it are slices of the frame. Bytes after the body are ignored, as in Kafka.
    ///
    /// # Errors
    /// What is wrong, and in which field: close the connection, as Kafka does.
    ///
    /// # Panics
    /// If `R` is not the request of [`RequestFrame::key`]: a mistake of the caller.
    pub fn decode<R: Request>(&self) -> Result<R, WireError> {
        assert_eq!(R::KEY, self.key, "decoded as another API than its header says");
        read_body(self.key.api(), self.version, &self.frame, self.body_at)
    }
}

/// What stands before every request body, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHeader {
    /// Number of the API.
    pub key: i16,
    /// Version of the API.
    pub version: i16,
    /// Chosen by the client.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<String>,
    /// Where the body begins.
    body_at: usize,
}

impl RequestHeader {
    /// Reads a request header: version 2 (with tagged fields) for flexible versions of a known API, else version 1. Where the API or
    /// the version is unknown only the first eight bytes are required.
    ///
    /// # Errors
    /// A header that is cut short or whose lengths are wrong.
    pub fn read(frame: &Bytes) -> Result<RequestHeader, WireError> {
        let mut from = Reader::new(frame, 0, false);
        Self::read_from(&mut from).map_err(|error| error.in_message("request header", 2))
    }

    /// Where in the frame the body begins.
    pub fn body_at(&self) -> usize {
        self.body_at
    }

    fn read_from(from: &mut Reader<'_>) -> Result<RequestHeader, WireError> {
        let key = from.int16().map_err(|error| error.in_field("RequestApiKey"))?;
        let version = from.int16().map_err(|error| error.in_field("RequestApiVersion"))?;
        let correlation_id = from.int32().map_err(|error| error.in_field("CorrelationId"))?;
        let client_id = from.string().map_err(|error| error.in_field("ClientId"));
        let known = ApiKey::from_code(key).map(ApiKey::api).filter(|api| api.versions.contains(version));
        let client_id = match known {
            Some(api) => {
                let client_id = client_id?;
                if api.is_flexible(version) {
                    from.tagged(|_, _| Ok(()))?;
                }
                client_id
            }
            None => client_id.ok().flatten(),
        };
        Ok(RequestHeader { key, version, correlation_id, client_id, body_at: from.position() })
    }
}

/// The message's name for errors, for example `ProduceRequest`.
fn name_of<T: Codec>(api: &Api) -> &'static str {
    match T::TYPE {
        Type::Struct(table) => table.name,
        _ => api.name,
    }
}

fn check_version<T: Codec>(api: &Api, version: i16) -> Result<(), WireError> {
    if api.versions.contains(version) {
        return Ok(());
    }
    let error = WireError::new(0, Problem::UnsupportedVersion(api.versions));
    Err(error.in_message(name_of::<T>(api), version))
}

fn read_body<T: Codec>(api: &Api, version: i16, frame: &Bytes, body_at: usize) -> Result<T, WireError> {
    check_version::<T>(api, version)?;
    let mut from = Reader::new(frame, version, api.is_flexible(version)).starting_at(body_at);
    T::read(&mut from, false).map_err(|error| error.in_message(name_of::<T>(api), version))
}

fn write_body<T: Codec>(api: &Api, version: i16, mut to: Writer, body: &T) -> Result<Frame, WireError> {
    check_version::<T>(api, version)?;
    body.write(&mut to, false);
    to.finish().map_err(|error| error.in_message(name_of::<T>(api), version))
}

/// A request as a frame ready for the socket (client side).
///
/// # Errors
/// A version this codec does not write, or a text or list that does not fit its length field. Fields that the version does not carry are
/// left out in silence: whether that matters is the caller's to know.
pub fn encode_request<R: Request>(
    correlation_id: i32,
    client_id: Option<&str>,
    version: i16,
    request: &R,
) -> Result<Frame, WireError> {
    let api = R::KEY.api();
    let flexible = api.is_flexible(version);
    let mut to = Writer::new(version, flexible);
    to.int16(api.key.code());
    to.int16(version);
    to.int32(correlation_id);
    to.short_string(client_id);
    if flexible {
        to.uvarint(0);
    }
    write_body(api, version, to, request)
}

/// An answer as a frame ready for the socket (broker side): header parts and record slices, in order.
///
/// # Errors
/// A version this codec does not write, or a text or list that does not fit its length field.
pub fn encode_response<R: Response>(
    correlation_id: i32,
    version: i16,
    response: &R,
) -> Result<Frame, WireError> {
    let api = R::KEY.api();
    let mut to = Writer::new(version, api.is_flexible(version));
    to.int32(correlation_id);
    if response_header_is_flexible(api, version) {
        to.uvarint(0);
    }
    write_body(api, version, to, response)
}

/// The answer to ApiVersions in an unknown version: body version 0, error 35 and the range of ApiVersions alone.
pub fn encode_api_versions_fallback(correlation_id: i32) -> Frame {
    let versions = ApiKey::ApiVersions.api().versions;
    let own = ApiVersion {
        api_key: ApiKey::ApiVersions.code(),
        min_version: versions.min,
        max_version: versions.max,
    };
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.code(),
        api_keys: vec![own],
        ..ApiVersionsResponse::default()
    };
    encode_response(correlation_id, 0, &response).expect("version 0 is written, and one row fits")
}

/// Reads the answer to a request of type `R` sent in this version with this correlation id, from a frame without its length
/// bytes (client side). An ApiVersions answer with error 35 is read as version 0, whatever was asked.
///
/// # Errors
/// What is wrong, and in which field; a wrong correlation id.
pub fn decode_response<R: Request>(
    frame: &Bytes,
    correlation_id: i32,
    version: i16,
) -> Result<R::Response, WireError> {
    let api = R::KEY.api();
    let mut from = Reader::new(frame, version, false);
    let in_header = |error: WireError| error.in_message("response header", 1);
    let found = from.int32().map_err(in_header)?;
    if found != correlation_id {
        let error = WireError::new(0, Problem::Correlation { expected: correlation_id, found });
        return Err(in_header(error));
    }
    if response_header_is_flexible(api, version) {
        from.tagged(|_, _| Ok(())).map_err(in_header)?;
    }
    let body_at = from.position();
    let version = match from.int16() {
        Ok(code) if api.key == ApiKey::ApiVersions && code == ErrorCode::UnsupportedVersion.code() => 0,
        _ => version,
    };
    read_body(api, version, frame, body_at)
}

/// The correlation id of an answer, to find its question.
///
/// # Errors
/// A frame of less than four bytes.
pub fn peek_correlation_id(frame: &Bytes) -> Result<i32, WireError> {
    Reader::new(frame, 0, false).int32().map_err(|error| error.in_message("response header", 0))
}

/// The response header of ApiVersions never has tagged fields: its reader does not know yet what the broker speaks.
fn response_header_is_flexible(api: &Api, version: i16) -> bool {
    api.key != ApiKey::ApiVersions && api.is_flexible(version)
}

pub(crate) fn rewrite<T: Codec>(key: ApiKey, version: i16, body: &Bytes) -> Result<Bytes, WireError> {
    let api = key.api();
    let value: T = read_body(api, version, body, 0)?;
    let to = Writer::new(version, api.is_flexible(version));
    Ok(write_body(api, version, to, &value)?.to_bytes().slice(4..))
}
