//! The thin binary `minikafka-controller` over its library.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let file = match (args.next().as_deref(), args.next(), args.next()) {
        (Some("--config"), Some(file), None) => file,
        _ => {
            eprintln!("usage: minikafka-controller --config FILE");
            return ExitCode::from(2);
        }
    };
    minikafka_node::raise_malloc_thresholds();
    let outcome = minikafka_node::load_config(Some(Path::new(&file)), std::env::vars(), &[])
        .map_err(|problems| anyhow::anyhow!("{problems}"))
        .and_then(|config| minikafka_controller::run(config.resolved));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
