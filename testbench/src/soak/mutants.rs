// SPDX-License-Identifier: Apache-2.0
//! Mutants of the control plane: one netlist, in which an input chooses which of its parts is wrong.

use std::collections::BTreeMap;
use std::path::PathBuf;

use openrnic_sim::model::BlockModel;
use serde::{Deserialize, Serialize};

use super::{Difference, Episode, Judge, Setup};

/// One mutation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mutant {
    /// Value of the selector; 0 is the block as it is.
    pub number: u32,
    /// Module that it is in.
    pub module: String,
    /// Source line, as far as the netlist tells.
    pub source: String,
    /// What is wrong.
    pub what: String,
}

/// The netlist and what is in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Mutants {
    /// Seed of the draw.
    pub seed: u64,
    /// Setup that the netlist is made for.
    pub setup: Setup,
    /// The netlist.
    pub netlist: PathBuf,
    /// The mutants.
    pub mutants: Vec<Mutant>,
}

/// What became of a mutant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Verdict {
    /// Selector.
    pub number: u32,
    /// Commands until the difference, and the difference; `None`: it survives.
    pub killed: Option<(u64, Difference)>,
}

impl Mutants {
    /// The block with that mutant chosen.
    ///
    /// # Panics
    /// When the netlist does not compile.
    #[allow(clippy::expect_used)]
    pub fn instance(&self, number: u32) -> BlockModel {
        let mut dut = BlockModel::builder("rnic_qp")
            .source(&self.netlist)
            .build()
            .expect("the netlist builds");
        dut.set("mutsel", u64::from(number));
        dut
    }

    /// Runs a mutant through random commands, until it shows or all are done.
    pub fn run(&self, number: u32, seed: u64, commands: u64) -> Verdict {
        let setup = Setup {
            seed,
            ..self.setup.clone()
        };
        let verdict = |killed| Verdict { number, killed };
        let judge = match Judge::around(self.instance(number), &setup) {
            Ok(judge) => judge,
            Err(difference) => return verdict(Some((0, difference))),
        };
        let mut episode = Episode::with(judge, &setup);
        episode.judge.bench.patience = 1 << 14;
        for n in 0..commands {
            if let Err(difference) = episode.command() {
                return verdict(Some((n + 1, difference)));
            }
        }
        verdict(None)
    }

    /// By module: mutants, killed.
    pub fn by_module(&self, verdicts: &[Verdict]) -> BTreeMap<String, (u32, u32)> {
        let mut out: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for v in verdicts {
            if let Some(m) = self.mutants.iter().find(|m| m.number == v.number) {
                let entry = out.entry(m.module.clone()).or_default();
                entry.0 += 1;
                entry.1 += u32::from(v.killed.is_some());
            }
        }
        out
    }
}
