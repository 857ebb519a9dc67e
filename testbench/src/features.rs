// SPDX-License-Identifier: Apache-2.0
//! The table feature → switch → test (`testbench/features.toml`), and the switches that the RTL has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

/// What every switch's name starts with.
const PREFIX: &str = "RNIC_CUT_";

/// A feature of the RTL, the switch that takes it out, and the test that notices.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// The feature in words.
    pub feature: String,
    /// File with the switch, below `rtl/`.
    pub file: String,
    /// The switch without `RNIC_CUT_`.
    pub cut: String,
    /// Package of the test.
    #[serde(default = "testbench")]
    pub package: String,
    /// Its target: the file in the package's `tests/`.
    pub target: String,
    /// The test.
    pub test: String,
}

fn testbench() -> String {
    "openrnic-testbench".to_owned()
}

impl Feature {
    /// The switch as the RTL spells it.
    pub fn define(&self) -> String {
        format!("{PREFIX}{}", self.cut)
    }

    /// Source of the test.
    ///
    /// # Errors
    /// A package that this project does not have.
    pub fn test_source(&self) -> anyhow::Result<PathBuf> {
        Ok(package_dir(&self.package)?
            .join("tests")
            .join(format!("{}.rs", self.target)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    feature: Vec<Feature>,
    #[serde(default)]
    open: Vec<Open>,
}

/// A switch that no test is known to notice yet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The switch without `RNIC_CUT_`.
    pub cut: String,
    /// What is missing.
    pub missing: String,
}

/// The top of the project.
pub fn project_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where a package lives.
///
/// # Errors
/// A package that this project does not have.
pub fn package_dir(package: &str) -> anyhow::Result<PathBuf> {
    let dir = match package {
        "openrnic-testbench" => "testbench",
        "openrnic-sim" => "sim",
        "openrnic-driver" => "host-driver",
        "openrnic-link" => "host-link",
        "openrnic" => "openrnic",
        _ => anyhow::bail!("no package {package} has tests of RTL features"),
    };
    Ok(project_root().join(dir))
}

/// The committed table.
///
/// # Errors
/// What is wrong with the file, with its line.
pub fn table() -> anyhow::Result<Vec<Feature>> {
    Ok(read()?.feature)
}

/// The switches that the table leaves open.
///
/// # Errors
/// As [`table`].
pub fn open() -> anyhow::Result<Vec<Open>> {
    Ok(read()?.open)
}

fn read() -> anyhow::Result<Table> {
    let path = project_root().join("testbench/features.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// Every switch that the RTL looks at, with the files that do.
///
/// # Errors
/// Files that cannot be read.
pub fn switches() -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let rtl = project_root().join("rtl");
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    let mut todo = vec![rtl.clone()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            if !path.extension().is_some_and(|e| e == "sv" || e == "svh") {
                continue;
            }
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            let name = path.strip_prefix(&rtl).unwrap_or(&path).to_string_lossy().into_owned();
            for switch in switches_in(&text) {
                found.entry(switch).or_default().insert(name.clone());
            }
        }
    }
    Ok(found)
}

/// Names behind `` `ifdef ``, `` `ifndef `` and `` `elsif `` that are switches.
fn switches_in(text: &str) -> Vec<String> {
    let mut words = text.split_whitespace();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if matches!(word, "`ifdef" | "`ifndef" | "`elsif")
            && let Some(name) = words.next()
            && name.starts_with(PREFIX)
        {
            found.push(name.to_owned());
        }
    }
    found
}

/// Checks that table and RTL name the same switches in the same files, each once, and that the named tests exist in the
/// sources of their targets.
///
/// # Errors
/// All that does not agree, a line each.
pub fn check(table: &[Feature]) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    let rtl = switches()?;
    let mut named = BTreeSet::new();
    for feature in table {
        let define = feature.define();
        if !named.insert(define.clone()) {
            wrong.push(format!("{define} is in the table twice"));
        }
        match rtl.get(&define) {
            None => wrong.push(format!("{define} is in the table, but not in the RTL")),
            Some(files) if !files.contains(&feature.file) => {
                wrong.push(format!("{define} is in {files:?}, the table says {}", feature.file));
            }
            Some(_) => {}
        }
        let source = feature.test_source()?;
        match fs::read_to_string(&source) {
            Err(error) => wrong.push(format!("{define}: its test's source {}: {error}", source.display())),
            Ok(text) if !has_test(&text, &feature.test) => {
                wrong.push(format!("{define}: {} has no test {}", source.display(), feature.test));
            }
            Ok(_) => {}
        }
    }
    for open in open()? {
        let define = format!("{PREFIX}{}", open.cut);
        if !rtl.contains_key(&define) || !named.insert(define.clone()) {
            wrong.push(format!(
                "{define} is open in the table, but not in the RTL, or not open"
            ));
        }
    }
    for (define, files) in rtl {
        if !named.contains(&define) {
            wrong.push(format!("{define} ({files:?}) is not in testbench/features.toml"));
        }
    }
    ensure!(
        wrong.is_empty(),
        "features, switches and tests do not agree:\n{}",
        wrong.join("\n")
    );
    Ok(())
}

/// Whether a source has a function of this name that is marked as a test.
fn has_test(text: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    text.match_indices(&format!("fn {name}("))
        .any(|(at, _)| text[..at].trim_end().ends_with("#[test]"))
}
