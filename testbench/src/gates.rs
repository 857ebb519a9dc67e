// SPDX-License-Identifier: Apache-2.0
//! Blocks at gate level: what Yosys makes of the RTL, in cells of the ECP5, behind the ports of the block.

use std::path::PathBuf;
use std::process::Command;

use openrnic_sim::model::rtl::{closure, project_root};
use openrnic_sim::model::{BlockBuilder, BlockModel, cache_root};

/// Cells that a netlist may consist of; their models stand in `testbench/tops/ecp5/`.
const CELLS: [&str; 6] = ["LUT4", "PFUMX", "CCU2C", "TRELLIS_FF", "TRELLIS_DPR16X4", "DP16KD"];

/// Whether benches shall take netlists where they can: `OPENRNIC_GATES=1`.
pub fn wanted() -> bool {
    std::env::var("OPENRNIC_GATES").is_ok_and(|v| !v.is_empty() && v != "0")
}

/// The builder of `top` at gate level: synthesised with these parameters (`scripts/gates.py`; a minute or so when it was not done before), and with
/// the switch of `OPENRNIC_CUT`, if any. Ports are those of the block; parameters are none any more.
///
/// # Errors
/// What Yosys said, or why it could not be asked.
pub fn builder(top: &str, params: &[(&str, u32)]) -> Result<BlockBuilder, String> {
    let root = project_root();
    let files = closure(top, &[]).map_err(|e| e.to_string())?;
    let mut command = Command::new(root.join(".tools/venv/bin/python"));
    command
        .arg(root.join("scripts/gates.py"))
        .arg(top)
        .arg("--into")
        .arg(cache_root());
    for (name, value) in params {
        command.arg("-G").arg(format!("{name}={value}"));
    }
    if let Ok(cut) = std::env::var("OPENRNIC_CUT")
        && !cut.is_empty()
    {
        command.arg("-D").arg(cut);
    }
    let output = command
        .args(&files)
        .output()
        .map_err(|e| format!("scripts/gates.py: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let netlist = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let builder = BlockModel::builder(top).source(netlist);
    Ok(CELLS
        .iter()
        .fold(builder, |b, cell| b.source(format!("testbench/tops/ecp5/{cell}.sv"))))
}
