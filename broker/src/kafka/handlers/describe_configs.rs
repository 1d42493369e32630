//! DescribeConfigs.
