// SPDX-License-Identifier: Apache-2.0
//! A serial port of the operating system, by a pseudo-terminal: bytes pass unchanged both ways, and one that is not there is told.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::time::Duration;

use openrnic_link::Line;
use openrnic_link::tty::Tty;
use serialport::{SerialPort, TTYPort};

#[test]
fn bytes_pass_unchanged_both_ways() {
    let (mut master, slave) = TTYPort::pair().unwrap();
    master.set_timeout(Duration::from_secs(10)).unwrap();
    let mut line = Tty::open(&slave.name().unwrap(), 115_200).unwrap();
    let all: Vec<u8> = (0..=255).collect();
    line.send(&all).unwrap();
    let mut got = vec![0; 256];
    master.read_exact(&mut got).unwrap();
    assert_eq!(got, all, "to the board");
    master.write_all(&all).unwrap();
    let mut got = Vec::new();
    for _ in 0..100_000 {
        line.tick().unwrap();
        got.extend(line.receive().into_iter().map(Option::unwrap));
        if got.len() == 256 {
            break;
        }
    }
    assert_eq!(got, all, "to the host");
    assert!(line.ready());
}

#[test]
fn a_port_that_is_not_there_is_named() {
    let error = Tty::open("/dev/no-such-port", 1_000_000).err().unwrap().to_string();
    assert!(error.contains("/dev/no-such-port at 1000000 baud"), "{error}");
}
