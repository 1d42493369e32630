//! Log lines in Kafka's shape, so that people find what they grep for: `[2026-11-02 10:00:00,123] INFO text (target)`.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Kafka's lines.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

struct KafkaLines;

impl<S, N> FormatEvent<S, N> for KafkaLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        write!(writer, "[{}] {} ", timestamp(), metadata.level())?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer, " ({})", metadata.target())
    }
}

fn timestamp() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    civil(since.as_secs(), since.subsec_millis())
}

/// UTC date and time of a Unix time, with Kafka's comma before the milliseconds (Howard Hinnant's calendar algorithm).
fn civil(seconds: u64, millis: u32) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02},{millis:03}")
}

/// Starts logging to standard output (`default` is the level where `RUST_LOG` says nothing, for example `info`). Later calls in the same
/// process change nothing, so that several nodes can live in one.
pub fn init_telemetry(default: &str, format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(std::io::stdout().is_terminal());
    // An error only says that a subscriber is set already.
    let _already_set = match format {
        LogFormat::Text => builder.event_format(KafkaLines).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_calendar_is_right() {
        assert_eq!(super::civil(0, 7), "1970-01-01 00:00:00,007");
        assert_eq!(super::civil(951_782_400, 0), "2000-02-29 00:00:00,000");
        assert_eq!(super::civil(1_793_612_345, 123), "2026-11-02 09:39:05,123");
    }
}
