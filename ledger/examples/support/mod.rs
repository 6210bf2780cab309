//! What the measurements of memory share.

use std::error::Error;

/// Three levels × two units, and room for everything that is asked.
pub const PLAN: &str = "
schema: admissionBudget.v1
routes:
  - name: chat
limits:
  global-requests: { scope: global, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  global-tokens: { scope: global, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
  tenant-requests: { scope: tenant, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  tenant-tokens: { scope: tenant, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
  user-requests: { scope: tenant+user, unit: requests, bucket: { amount: 1000000000, per: 1s } }
  user-tokens: { scope: tenant+user, unit: tokens, period: { limit: 1000000000000000, every: 1h } }
";

/// Bytes of physical memory that the process holds, by the kernel.
pub fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split_whitespace().nth(1).ok_or("statm has no second field")?.parse()?;
    Ok(pages * 4096)
}
