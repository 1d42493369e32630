//! The janitor's thread: checkpoints at their intervals, retention, files of deleted partitions, expired producer ids.

use std::sync::Arc;
use std::time::Duration;

use minikafka_node::Shutdown;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::service::Service;

/// How often files of deleted partitions are looked through.
const DELETIONS: Duration = Duration::from_secs(1);

/// Cleans until the stop.
pub(crate) async fn clean(service: Arc<Service>, stop: Shutdown) {
    let every = |period: Duration| {
        let period = period.max(Duration::from_millis(10));
        let mut interval = interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    };
    let settings = &service.settings;
    let mut high_watermarks = every(settings.high_watermark_checkpoint_interval);
    let mut recovery_points = every(settings.recovery_point_checkpoint_interval);
    let mut retention = every(settings.retention_check_interval);
    let mut producers = every(settings.producer_id_expiration_interval);
    let mut deletions = every(DELETIONS);
    loop {
        let done = tokio::select! {
            _ = high_watermarks.tick() => service.store.checkpoint_high_watermarks(&service.replicas.all()),
            _ = recovery_points.tick() => service.store.checkpoint_recovery_points(&service.replicas.all()),
            _ = retention.tick() => {
                service.retain();
                Ok(())
            }
            _ = producers.tick() => {
                service.expire_producers();
                Ok(())
            }
            _ = deletions.tick() => service.store.remove_deleted(service.clock.now()),
            () = stop.wait() => return,
        };
        if let Err(error) = done {
            service.directory_failed(&error.to_string());
        }
    }
}
