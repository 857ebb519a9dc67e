// File list of the core, packages first. Paths are relative to the project root.
rtl/gen/rnic_spec_pkg.sv
rtl/pkg/rnic_pkg.sv
