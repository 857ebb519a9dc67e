// SPDX-License-Identifier: Apache-2.0
//! Finds the source files that a module needs.
//!
//! The RTL keeps one module per file, named as the module. So the files of a design are found from
//! its top by name, without a list to maintain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::ModelError;

/// Root of the project: `$OPENRNIC_ROOT`, or the tree this crate was built from.
pub fn project_root() -> PathBuf {
    if let Some(root) = std::env::var_os("OPENRNIC_ROOT") {
        return PathBuf::from(root);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The source files of the design under `top`, packages and dependencies first.
///
/// Looks in `rtl/` of the project and in `extra` (files outside of it, such as a bench's own
/// wrapper; they win over files of the same name).
///
/// # Errors
/// When no file is named as the top, or a file cannot be read.
pub fn closure(top: &str, extra: &[PathBuf]) -> Result<Vec<PathBuf>, ModelError> {
    let rtl = project_root().join("rtl");
    let mut by_name = BTreeMap::new();
    if rtl.is_dir() {
        index(&rtl, &mut by_name)?;
    }
    for file in extra {
        if let Some(stem) = file.file_stem().and_then(|s| s.to_str()) {
            by_name.insert(stem.to_owned(), file.clone());
        }
    }
    if !by_name.contains_key(top) {
        return Err(ModelError::NoSuchModule {
            module: top.to_owned(),
            root: rtl,
        });
    }
    let mut found = Found {
        by_name,
        seen: BTreeSet::new(),
        packages: Vec::new(),
        modules: Vec::new(),
    };
    found.visit(top)?;
    // Packages that only another package needs are found behind it, so order them among themselves.
    let mut files = found.packages;
    files.append(&mut found.modules);
    Ok(files)
}

fn index(dir: &Path, by_name: &mut BTreeMap<String, PathBuf>) -> Result<(), ModelError> {
    for entry in std::fs::read_dir(dir).map_err(ModelError::io("reading", dir))? {
        let path = entry.map_err(ModelError::io("reading", dir))?.path();
        if path.is_dir() {
            index(&path, by_name)?;
        } else if path.extension().is_some_and(|e| e == "sv")
            && let Some(stem) = path.file_stem().and_then(|s| s.to_str())
        {
            by_name.insert(stem.to_owned(), path);
        }
    }
    Ok(())
}

struct Found {
    by_name: BTreeMap<String, PathBuf>,
    seen: BTreeSet<String>,
    packages: Vec<PathBuf>,
    modules: Vec<PathBuf>,
}

impl Found {
    fn visit(&mut self, name: &str) -> Result<(), ModelError> {
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.by_name.get(name).cloned() else {
            return Ok(());
        };
        let text = std::fs::read_to_string(&path).map_err(ModelError::io("reading", &path))?;
        for word in words(&text) {
            if word != name && self.by_name.contains_key(word) {
                self.visit(word)?;
            }
        }
        if name.ends_with("_pkg") {
            self.packages.push(path);
        } else {
            self.modules.push(path);
        }
        Ok(())
    }
}

/// Identifiers of SystemVerilog text, comments left out.
fn words(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                while i < bytes.len() && bytes[i] != b'\n' {
                    i += 1;
                }
            }
            b'/' if bytes.get(i + 1) == Some(&b'*') => {
                i = text[i + 2..].find("*/").map_or(bytes.len(), |end| i + 2 + end + 2);
            }
            c if c.is_ascii_alphabetic() || c == b'_' => {
                let start = i;
                while i < bytes.len() && (bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_') {
                    i += 1;
                }
                out.push(&text[start..i]);
            }
            _ => i += 1,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_name_no_dependency() {
        assert_eq!(words("a /* b c */ d // e\n f_1 2g"), ["a", "d", "f_1", "g"]);
        assert_eq!(words("x /* open"), ["x"]);
    }

    #[test]
    fn dependencies_come_before_their_users_and_packages_first() {
        let dir = std::env::temp_dir().join(format!("onr-closure-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let extra = [
            file("zz_top.sv", "module zz_top; import zz_b_pkg::*; zz_leaf u(); endmodule"),
            file("zz_leaf.sv", "module zz_leaf; endmodule // zz_unused"),
            file("zz_b_pkg.sv", "package zz_b_pkg; import zz_a_pkg::*; endpackage"),
            file("zz_a_pkg.sv", "package zz_a_pkg; endpackage"),
            file("zz_unused.sv", "module zz_unused; endmodule"),
        ];
        let files = closure("zz_top", &extra).unwrap();
        let names: Vec<_> = files.iter().map(|f| f.file_stem().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["zz_a_pkg", "zz_b_pkg", "zz_leaf", "zz_top"]);
        assert!(matches!(
            closure("zz_absent", &extra),
            Err(ModelError::NoSuchModule { .. })
        ));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
