//! Generates the wire's Rust code without any program outside Cargo: protox
//! reads the definitions, tonic-prost-build writes the code.

use std::path::PathBuf;

/// Every definition; a file that is not listed here is not compiled.
const FILES: [&str; 10] = [
    "common",
    "ledger",
    "quotas",
    "plans",
    "operations",
    "members",
    "history",
    "raft",
    "storage",
    "snapshot",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<String> = FILES.iter().map(|name| format!("proto/holdfast/v1/{name}.proto")).collect();
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(&files, ["proto"])?;
    // For reflection, without comments and source positions.
    let mut bare = descriptors.clone();
    for file in &mut bare.file {
        file.source_code_info = None;
    }
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), prost::Message::encode_to_vec(&bare))?;
    // `Bytes` shares the buffer that a message was read from instead of copying.
    // What holds a key is not to be printed by accident: see src/webhooks.rs.
    tonic_prost_build::configure().bytes(".").skip_debug(["holdfast.v1.Webhook"]).compile_fds(descriptors)?;
    Ok(())
}
