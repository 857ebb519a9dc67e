// File list of the core, packages first. Paths are relative to this folder.
gen/rnic_spec_pkg.sv
pkg/rnic_pkg.sv
