//! InitProducerId (22): an identity for an idempotent producer.

wire_structs! {
    /// Asks for a producer id and epoch.
    pub struct InitProducerIdRequest {
        /// Set by transactional producers only.
        transactional_id: Option<String> = TransactionalId(0+) null(0+),
        /// Milliseconds after which a transaction is aborted.
        transaction_timeout_ms: i32 = TransactionTimeoutMs(0+),
        /// The id in use, to raise its epoch; -1 for a new one.
        producer_id: i64 = ProducerId(3+) default(-1),
        /// Epoch of the producer; -1 for none.
        producer_epoch: i16 = ProducerEpoch(3+) default(-1),
        enable2_pc: bool = Enable2Pc(6+) default(false),
        keep_prepared_txn: bool = KeepPreparedTxn(6+) default(false),
    }

    /// The producer id and epoch.
    pub struct InitProducerIdResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// Id of the producer; -1 for none.
        producer_id: i64 = ProducerId(0+) default(-1),
        /// Epoch of the producer; -1 for none.
        producer_epoch: i16 = ProducerEpoch(0+),
        ongoing_txn_producer_id: i64 = OngoingTxnProducerId(6+) default(-1),
        ongoing_txn_producer_epoch: i16 = OngoingTxnProducerEpoch(6+) default(-1),
    }
}
