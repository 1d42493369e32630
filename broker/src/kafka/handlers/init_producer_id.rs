//! InitProducerId: a new id for an idempotent producer.

use std::sync::Arc;
use std::time::Duration;

use minikafka_model::ErrorCode;
use minikafka_wire::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use crate::controller_link::ProducerIds;

/// How long a request waits for a block of ids from the controllers before it hears COORDINATOR_LOAD_IN_PROGRESS.
const PATIENCE: Duration = Duration::from_secs(1);

/// Without a transactional id any broker answers, from its own block; what the client says of an id and epoch it had is not looked at,
/// except that half of it is nonsense (42).
pub(crate) fn refusal(request: &InitProducerIdRequest) -> Option<InitProducerIdResponse> {
    let failed = |code: ErrorCode| InitProducerIdResponse {
        error_code: code.code(),
        producer_epoch: -1,
        ..InitProducerIdResponse::default()
    };
    if (request.producer_id == -1) != (request.producer_epoch == -1) {
        return Some(failed(ErrorCode::InvalidRequest));
    }
    match request.transactional_id.as_deref() {
        None => None,
        Some("") => Some(failed(ErrorCode::InvalidRequest)),
        // There are no transactions here, so this broker coordinates none.
        Some(_) => Some(failed(ErrorCode::NotCoordinator)),
    }
}

/// Hands out an id.
pub(crate) async fn handle(ids: Arc<ProducerIds>) -> InitProducerIdResponse {
    match ids.next_within(PATIENCE).await {
        Some(id) => InitProducerIdResponse {
            producer_id: id.0,
            producer_epoch: 0,
            ..InitProducerIdResponse::default()
        },
        None => InitProducerIdResponse {
            error_code: ErrorCode::CoordinatorLoadInProgress.code(),
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        },
    }
}
