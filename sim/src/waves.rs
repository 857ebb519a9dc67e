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

/// What decides about queue pairs in a whole NIC: signals of [`BATCH`] and their bits.
const QP_ENGINE: &[(&str, usize)] = &[
    ("accept", 1),
    ("state_q", 4),
    ("s1_valid_q", 1),
    ("s1_qpn_q", 32),
    ("own_hot_i.state", 3),
    ("s3_valid_q", 1),
    ("gate_ok_i", 1),
    ("gate_rule_i", 8),
    ("gate_detail_i", 32),
    ("we_o", 1),
    ("hot_o.state", 3),
    ("cpl_valid_o", 1),
    ("cpl_o.status", 8),
];
const BATCH: &str = "u_core.u_qp.u_batch";

/// Both files as they are written.
struct Groups {
    gtkw: String,
    sucl: String,
}

impl Groups {
    fn new(trace: &str) -> Self {
        // The starred line is the zoom of GTKWave: as a power of two, so that a window shows some hundred microseconds.
        let gtkw = format!("[dumpfile] \"{trace}\"\n[timestart] 0\n*-27.000000 0 -1\n");
        Self {
            gtkw,
            sucl: String::new(),
        }
    }

    fn title(&mut self, title: &str) {
        let _ = writeln!(self.gtkw, "@200\n-{title}");
        let _ = writeln!(self.sucl, "divider_add {title}");
    }

    fn signal(&mut self, path: &str, bits: usize) {
        // Flag 28: one bit; 22: hexadecimal.
        let _ = if bits == 1 {
            writeln!(self.gtkw, "@28\n{path}")
        } else {
            writeln!(self.gtkw, "@22\n{path}[{}:0]", bits - 1)
        };
        let _ = writeln!(self.sucl, "variable_add {path}");
    }
}

/// Writes the groups of all NICs beside the trace: what the QP engine decides, and the pins.
pub(crate) fn save_groups(trace: &Path, top: &str, nics: usize) -> Result<(), ModelError> {
    let width = top.rsplit('_').next().and_then(|w| w.parse().ok()).unwrap_or(64);
    let name = trace
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut groups = Groups::new(&name);
    for nic in 0..nics {
        for group in GROUPS {
            groups.title(&format!("nic{nic}: {}", group.title));
            for signal in group.signals {
                let path = format!("nic{nic}.{top}.{}{signal}", group.prefix);
                groups.signal(&path, bits_of(signal, width));
            }
            if group.title == "clock" && top.starts_with("rnic_top_") {
                groups.title(&format!("nic{nic}: QP engine"));
                for (signal, bits) in QP_ENGINE {
                    groups.signal(&format!("nic{nic}.{top}.{BATCH}.{signal}"), *bits);
                }
            }
        }
    }
    let _ = writeln!(groups.sucl, "zoom_fit");
    for (extension, text) in [("gtkw", &groups.gtkw), ("sucl", &groups.sucl)] {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The groups of a whole NIC name inner signals; this finds out about a renamed one without building a NIC.
    #[test]
    fn the_signals_of_the_qp_engine_stand_in_its_source() {
        let source =
            std::fs::read_to_string(crate::model::rtl::project_root().join("rtl/qp/rnic_qp_batch.sv")).unwrap();
        let words: std::collections::HashSet<&str> = source.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for (signal, _) in QP_ENGINE {
            let name = signal.split('.').next().unwrap();
            assert!(words.contains(name), "{name} is not in rnic_qp_batch.sv");
        }
    }
}
