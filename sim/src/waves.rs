// SPDX-License-Identifier: Apache-2.0
//! Signal groups saved beside a trace, for GTKWave (`.gtkw`) and Surfer (`.sucl`).

use std::fmt::Write;
use std::path::Path;

use crate::model::ModelError;

/// A group of pins of the top module.
struct Group {
    title: &'static str,
    prefix: &'static str,
    signals: &'static [&'static str],
}

const GROUPS: &[Group] = &[
    Group {
        title: "clock",
        prefix: "",
        signals: &["clk_i", "rst_i", "bus_master_en_i", "port_up_i"],
    },
    Group {
        title: "host requests",
        prefix: "cq_",
        signals: &["valid_i", "ready_o", "hdr_i", "data_i", "last_i"],
    },
    Group {
        title: "host completions",
        prefix: "cc_",
        signals: &["valid_o", "ready_i", "hdr_o", "data_o", "last_o"],
    },
    Group {
        title: "DMA requests",
        prefix: "rq_",
        signals: &["valid_o", "ready_i", "hdr_o", "data_o", "last_o"],
    },
    Group {
        title: "DMA completions",
        prefix: "rc_",
        signals: &["valid_i", "ready_o", "hdr_i", "data_i", "last_i"],
    },
    Group {
        title: "MAC receive",
        prefix: "mac_rx_",
        signals: &["valid_i", "ready_o", "data_i", "keep_i", "last_i", "err_i"],
    },
    Group {
        title: "MAC transmit",
        prefix: "mac_tx_",
        signals: &["valid_o", "ready_i", "data_o", "keep_o", "last_o"],
    },
];

/// Writes the groups of all NICs' pins beside the trace.
pub(crate) fn save_groups(trace: &Path, top: &str, nics: usize) -> Result<(), ModelError> {
    let width = top.rsplit('_').next().and_then(|w| w.parse().ok()).unwrap_or(64);
    let name = trace
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut gtkw = format!("[dumpfile] \"{name}\"\n[timestart] 0\n");
    let mut sucl = String::new();
    for nic in 0..nics {
        for group in GROUPS {
            let _ = writeln!(gtkw, "@200\n-nic{nic}: {}", group.title);
            let _ = writeln!(sucl, "divider_add nic{nic}: {}", group.title);
            for signal in group.signals {
                let path = format!("nic{nic}.{top}.{}{signal}", group.prefix);
                let bits = bits_of(signal, width);
                // Flag 28: one bit; 22: hexadecimal.
                let (flags, range) = if bits == 1 {
                    (28, String::new())
                } else {
                    (22, format!("[{}:0]", bits - 1))
                };
                let _ = writeln!(gtkw, "@{flags}\n{path}{range}");
                let _ = writeln!(sucl, "variable_add {path}");
            }
        }
    }
    let _ = writeln!(sucl, "zoom_fit");
    for (extension, text) in [("gtkw", &gtkw), ("sucl", &sucl)] {
        let path = trace.with_extension(extension);
        std::fs::write(&path, text).map_err(ModelError::io("writing", &path))?;
    }
    Ok(())
}

fn bits_of(signal: &str, data_width: usize) -> usize {
    match signal {
        "hdr_i" | "hdr_o" => 128,
        "data_i" | "data_o" => data_width,
        "keep_i" | "keep_o" => data_width / 8,
        _ => 1,
    }
}
