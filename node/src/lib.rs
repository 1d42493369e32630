//! What any process needs: OS disk, clock, configuration, telemetry, HTTP, shutdown, named threads.
