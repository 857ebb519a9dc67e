// SPDX-License-Identifier: Apache-2.0
//! Command line of OpenRNIC.

fn main() -> anyhow::Result<()> {
    anyhow::bail!("no command is built in yet")
}
