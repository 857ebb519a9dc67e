// SPDX-License-Identifier: Apache-2.0
//! A scenario to which tests add their steps: two NICs, a region and two connected queue pairs on each.

/// `wait_cycles` is its `[sim]` budget; the first PSN is 0x100.
pub fn base(wait_cycles: u64) -> String {
    format!(
        r#"name = "t"
[sim]
wait_cycles = {wait_cycles}
[[nic]]
name = "a"
[[nic]]
name = "b"
[[mr]]
name = "m"
nic = "a"
bytes = 256
fill = "count"
[[mr]]
name = "n"
nic = "b"
bytes = 256
[[qp]]
name = "q"
nic = "a"
count = 2
[[qp]]
name = "r"
nic = "b"
count = 2
[[step]]
do = "install"
qps = "q"
[[step]]
do = "install"
qps = "r"
[[step]]
do = "connect"
a = "q"
b = "r"
psn = 0x100
"#
    )
}
