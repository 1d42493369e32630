//! Byte equality with real traffic of Kafka 4.4, both directions, every key and version.

mod support;

use std::collections::BTreeSet;

use bytes::Bytes;
use minikafka_wire::{
    APIS, ApiKey, Direction, Request, RequestFrame, RequestHeader, RequestRefusal, api, decode_response,
    encode_request, encode_response,
};
use support::{Exchange, exchanges, fields_of, hex, response_body_at};

#[test]
fn every_version_we_speak_was_recorded() {
    let recorded: BTreeSet<(ApiKey, i16)> = exchanges()
        .iter()
        .filter(|exchange| exchange.response.is_some())
        .map(|exchange| (exchange.key, exchange.version))
        .collect();
    let spoken: BTreeSet<(ApiKey, i16)> =
        APIS.iter().flat_map(|api| api.versions.iter().map(|version| (api.key, version))).collect();
    assert_eq!(recorded, spoken);
}

#[test]
fn bytes_become_fields_and_the_same_bytes_again() {
    for exchange in exchanges() {
        let Exchange { key, version, request, response, request_fields, response_fields } = exchange;
        let Some(response) = response else {
            let refusal = RequestFrame::parse(request).expect_err("Kafka closed the connection");
            assert!(
                matches!(refusal, RequestRefusal::UnsupportedVersion { key: k, version: v, .. } if (k, v) == (key, version)),
                "{key} {version}: {refusal}"
            );
            continue;
        };
        let header = RequestHeader::read(&request).expect("a header");
        assert_eq!((header.key, header.version), (key.code(), version));
        assert_eq!(header.client_id.as_deref(), Some("probe"));
        let body = request.slice(header.body_at()..);
        assert_eq!(
            fields_of(key, Direction::Request, version, &body),
            request_fields,
            "{key} {version} request"
        );
        let body = response.slice(response_body_at(key, version)..);
        assert_eq!(
            fields_of(key, Direction::Response, version, &body),
            response_fields,
            "{key} {version} response"
        );
        whole_frames(key, version, header.correlation_id, &request, &response);
    }
}

/// Typed, with headers, through the doors the broker and the client use.
fn whole_frames(key: ApiKey, version: i16, correlation_id: i32, request: &Bytes, response: &Bytes) {
    macro_rules! check {
        ($($key:ident $module:ident $request:ident $response:ident,)*) => {
            match key {$(
                ApiKey::$key => check_frames::<minikafka_wire::$module::$request>(version, correlation_id, request, response),
            )*}
        };
    }
    each_api!(check);
}

fn check_frames<R: Request>(version: i16, correlation_id: i32, request: &Bytes, response: &Bytes) {
    let name = format!("{} {version}", R::KEY);
    let body = if R::KEY.api().served {
        RequestFrame::parse(request.clone()).and_then(|frame| Ok(frame.decode::<R>()?)).expect("a request")
    } else {
        let at = RequestHeader::read(request).expect("a header").body_at();
        let again = api::rewrite(R::KEY, Direction::Request, version, &request.slice(at..)).expect("a body");
        assert_eq!(hex(&again), hex(&request[at..]), "{name}");
        R::default()
    };
    if R::KEY.api().served {
        let again = encode_request(correlation_id, Some("probe"), version, &body).expect("encodes");
        assert_eq!(hex(&again.to_bytes()[4..]), hex(request), "{name} request");
    }
    let body = decode_response::<R>(response, correlation_id, version).expect("a response");
    let again = encode_response(correlation_id, version, &body).expect("encodes");
    assert_eq!(hex(&again.to_bytes()[4..]), hex(response), "{name} response");
}
