//! Compiles the contracts without protoc.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["proto/raft.proto", "proto/cluster.proto", "proto/replica.proto"];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
