// SPDX-License-Identifier: Apache-2.0
//! A simulated board at the end of a pseudo-terminal, to try the host link without hardware:
//!
//! ```console
//! $ cargo run --release -p openrnic-link --example board     # prints the name of the terminal
//! $ cargo run --release -p openrnic -- --bus serial:/dev/pts/7@115200 devinfo
//! ```
//!
//! It runs as fast as the simulation does (some kilobytes a second), until it is interrupted.
#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use common::{Board, Cable, DIV, RETRY};
use openrnic_link::Line;
use openrnic_sim::model::{BlockModel, Effort};
use serialport::{SerialPort, TTYPort};

fn main() {
    let dut = BlockModel::builder("rnic_top_serial")
        .param("Div", DIV)
        .param("RetryCycles", RETRY)
        .effort(Effort::Full)
        .build()
        .unwrap();
    let mut board = Board::new(dut, DIV, 40, 1);
    board.dut.set("port_up_i", 1);
    board.dut.set("mac_tx_ready_i", 1);
    let mut cable = Cable::new(board);
    let (mut master, slave) = TTYPort::pair().unwrap();
    master.set_timeout(Duration::from_millis(1)).unwrap();
    println!("{}", slave.name().unwrap());
    let mut bytes = [0; 4096];
    loop {
        cable.tick().unwrap();
        let out: Vec<u8> = cable.receive().into_iter().flatten().collect();
        master.write_all(&out).unwrap();
        if master.bytes_to_read().is_ok_and(|n| n > 0) {
            match master.read(&mut bytes) {
                Ok(n) => cable.send(&bytes[..n]).unwrap(),
                Err(e) if e.kind() == ErrorKind::TimedOut => {}
                Err(e) => panic!("{e}"),
            }
        }
    }
}
