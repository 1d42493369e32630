//! ApiVersions: what is served here, and who the client is.

use minikafka_metadata::{Image, METADATA_VERSION};
use minikafka_model::{BrokerId, ErrorCode};
use minikafka_wire::api::advertised;
use minikafka_wire::api_versions::{
    ApiVersionsRequest, ApiVersionsResponse, FinalizedFeature, SupportedFeature,
};

use crate::kafka::connection::Client;

/// Features that work here, with the levels they can have.
const FEATURES: &[(&str, i16, i16)] = &[(METADATA_VERSION, 7, 33)];

/// Answers, and takes note of the client's software.
pub(crate) fn handle(
    request: ApiVersionsRequest,
    version: i16,
    client: &mut Client,
    me: BrokerId,
    image: &Image,
) -> ApiVersionsResponse {
    if let Some(code) = refusal(&request, version, me, image) {
        return ApiVersionsResponse { error_code: code.code(), ..ApiVersionsResponse::default() };
    }
    if version >= 3 {
        client.software = Some((request.client_software_name, request.client_software_version));
    }
    let features = FEATURES.iter().filter(|(_, lowest, _)| version >= 4 || *lowest > 0);
    ApiVersionsResponse {
        api_keys: advertised(),
        supported_features: features
            .map(|(name, min, max)| SupportedFeature {
                name: (*name).to_owned(),
                min_version: *min,
                max_version: *max,
            })
            .collect(),
        finalized_features_epoch: image.offset().map_or(-1, |offset| offset.0),
        finalized_features: FEATURES
            .iter()
            .map(|(name, ..)| (*name, image.feature(name)))
            .filter(|(_, level)| *level > 0)
            .map(|(name, level)| FinalizedFeature {
                name: name.to_owned(),
                max_version_level: level.cast_signed(),
                min_version_level: level.cast_signed(),
            })
            .collect(),
        ..ApiVersionsResponse::default()
    }
}

/// 42 for a name that no client has, or half an address; 129 for a client that means another cluster or node (the oracle, 4.4).
fn refusal(request: &ApiVersionsRequest, version: i16, me: BrokerId, image: &Image) -> Option<ErrorCode> {
    let software = [&request.client_software_name, &request.client_software_version];
    if version >= 3 && !software.into_iter().all(|word| is_software_word(word)) {
        return Some(ErrorCode::InvalidRequest);
    }
    match (&request.cluster_id, request.node_id) {
        (None, -1) => None,
        (None, _) | (Some(_), -1) => Some(ErrorCode::InvalidRequest),
        (Some(cluster), node) if *cluster == image.cluster().0 && node == me.0 => None,
        (Some(_), _) => Some(ErrorCode::RebootstrapRequired),
    }
}

/// Letters, digits, dots and dashes, neither first nor last a dot or dash.
fn is_software_word(word: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    word.chars().all(inner)
        && word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use minikafka_model::ClusterId;

    use super::*;

    fn ask(request: ApiVersionsRequest, version: i16) -> (i16, usize) {
        let mut client =
            Client { address: ([127, 0, 0, 1], 1).into(), listener: "PLAINTEXT".into(), software: None };
        let image = Image::empty(ClusterId("ours".to_owned()));
        let answer = handle(request, version, &mut client, BrokerId(1), &image);
        (answer.error_code, answer.api_keys.len())
    }

    fn from(cluster_id: Option<&str>, node_id: i32) -> ApiVersionsRequest {
        ApiVersionsRequest {
            client_software_name: "probe".to_owned(),
            client_software_version: "1.0".to_owned(),
            cluster_id: cluster_id.map(str::to_owned),
            node_id,
        }
    }

    #[test]
    fn a_client_that_means_another_cluster_or_node_is_told() {
        let all = advertised().len();
        assert_eq!(ask(from(None, -1), 5), (0, all));
        assert_eq!(ask(from(Some("ours"), 1), 5), (0, all));
        assert_eq!(ask(from(Some("theirs"), 1), 5), (129, 0));
        assert_eq!(ask(from(Some("ours"), 2), 5), (129, 0));
        assert_eq!(ask(from(Some("ours"), -1), 5), (42, 0));
        assert_eq!(ask(from(None, 1), 5), (42, 0));
    }

    #[test]
    fn software_words_are_plain() {
        for (word, legal) in [
            ("librdkafka", true),
            ("2.1-x", true),
            ("a b", false),
            ("-a", false),
            ("a-", false),
            ("", false),
            ("é", false),
        ] {
            assert_eq!(is_software_word(word), legal, "{word}");
        }
        let nameless = ApiVersionsRequest { client_software_name: "a/b".to_owned(), ..from(None, -1) };
        assert_eq!(ask(nameless.clone(), 3), (42, 0));
        assert_eq!(ask(nameless, 2).0, 0, "old versions carry no name");
    }
}
