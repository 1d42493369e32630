//! Cluster metadata: records, image, apply, delta, snapshot and a broker's local plan.
