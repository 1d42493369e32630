//! One role in the foreground: the same code whether a person, a container or `up` starts it.

use crate::args::Role;
use crate::failure::{Failure, Outcome};

/// `minikafka broker`.
pub(crate) fn broker(asked: &Role) -> Outcome {
    begin(asked)?;
    Err(Failure::error("this build cannot run brokers yet"))
}

/// `minikafka controller`.
pub(crate) fn controller(asked: &Role) -> Outcome {
    begin(asked)?;
    Err(Failure::error("this build cannot run controllers yet"))
}

/// `minikafka node`.
pub(crate) fn node(asked: &Role) -> Outcome {
    begin(asked)?;
    Err(Failure::error("this build cannot run combined nodes yet"))
}

fn begin(asked: &Role) -> Outcome {
    if let Some(supervisor) = asked.supervisor {
        minikafka_node::end_with_parent(supervisor).map_err(Failure::error)?;
    }
    Ok(())
}
