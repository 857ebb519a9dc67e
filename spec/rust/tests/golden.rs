// SPDX-License-Identifier: Apache-2.0
//! The accessors against bytes written by hand, in both directions.
#![allow(clippy::unwrap_used)] // in the helpers of the tests, too

use openrnic_spec::*;

/// Bytes from groups of hexadecimal digits; `00x56` stands for 56 zero bytes.
fn bytes(groups: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in groups.iter().flat_map(|g| g.split_whitespace()) {
        match word.split_once('x') {
            Some((byte, times)) => {
                out.resize(
                    out.len() + times.parse::<usize>().unwrap(),
                    u8::from_str_radix(byte, 16).unwrap(),
                );
            }
            None => out.push(u8::from_str_radix(word, 16).unwrap()),
        }
    }
    out
}

macro_rules! goldens {
    ($($name:ident [$($hex:literal)+] { $($field:ident, $with:ident = $value:expr;)* })*) => {
        #[test]
        fn golden_bytes_are_read_as_written() {
            $({
                let golden = bytes(&[$($hex),+]);
                assert_eq!(golden.len(), $name::BYTES, "size of {}", stringify!($name));
                let read = $name::from_bytes(&golden).unwrap();
                let _ = &read;
                $(assert_eq!(read.$field(), $value, concat!(stringify!($name), ".", stringify!($field)));)*
                assert!($name::from_bytes(&golden[1..]).is_err());
            })*
        }

        #[test]
        fn builders_make_the_golden_bytes() {
            $({
                let made = $name::new()$(.$with($value))*;
                assert_eq!(made.as_bytes().as_slice(), bytes(&[$($hex),+]), "{}", stringify!($name));
                assert!(made.rsvd_ok());
            })*
        }

        #[test]
        fn a_setter_leaves_every_other_bit_alone() {
            $({
                // Over all ones, the builders must change the bits of the fields to those of the golden
                // bytes and leave the reserved ones.
                let made = $name([0xff; $name::BYTES])$(.$with($value))*;
                let golden = bytes(&[$($hex),+]);
                for (i, byte) in made.as_bytes().iter().enumerate() {
                    assert_eq!(*byte, golden[i] | $name::RESERVED[i], "{} byte {i}", stringify!($name));
                }
                assert_eq!(made.rsvd_ok(), $name::RESERVED.iter().all(|b| *b == 0), "{}", stringify!($name));
            })*
        }

        #[test]
        fn each_reserved_bit_is_seen() {
            $({
                for i in 0..$name::BYTES * 8 {
                    let mut bytes = [0; $name::BYTES];
                    bytes[i / 8] = 1 << (i % 8);
                    assert_eq!($name(bytes).rsvd_ok(), $name::RESERVED[i / 8] >> (i % 8) & 1 == 0, "{} bit {i}", stringify!($name));
                }
            })*
        }

        #[test]
        fn debug_names_type_and_fields() {
            $({
                let text = format!("{:?}", $name::new());
                assert!(text.starts_with(stringify!($name)), "{text}");
                $(assert!(text.contains(concat!(stringify!($field), ": ")), "{text}");)*
            })*
        }

        /// Structures that have golden bytes.
        const GOLDEN_NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

include!("../../tests/golden.rs");

#[test]
fn every_structure_and_header_has_golden_bytes() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut found = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            let spec: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
            for kind in ["layout", "header"] {
                for item in spec.get(kind).and_then(|v| v.as_array()).into_iter().flatten() {
                    let name = item["name"].as_str().unwrap();
                    assert!(
                        GOLDEN_NAMES.contains(&name),
                        "{name} has no golden bytes in spec/tests/golden.rs"
                    );
                    found += 1;
                }
            }
        }
    }
    assert_eq!(found, GOLDEN_NAMES.len());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "0x10 does not fit 4 bits")]
fn a_value_too_large_for_its_field_panics() {
    CmdQp::new().set_qp_type(16);
}

#[test]
fn the_example_frame_of_a_send_only_parses() {
    // Ethernet aside: a SEND_ONLY of "hello" as Linux and scapy encode it, IPv4 header to ICRC.
    let frame = bytes(&[
        "45 02 00 34 12 34 40 00 40 11 a5 2f c0 a8 01 01 c0 a8 01 02",
        "c1 23 12 b7 00 20 6a 82",
        "04 40 ff ff 00 00 00 11 80 12 34 56",
        "68 65 6c 6c 6f 21 21 21 ae 78 71 b6",
    ]);
    let ip = Ipv4Hdr::from_bytes(&frame).unwrap();
    assert_eq!(
        (ip.version(), ip.ihl(), ip.ecn(), ip.df(), ip.ttl()),
        (4, 5, 2, true, 64)
    );
    assert_eq!(ip.protocol(), IP_PROTO_UDP);
    assert_eq!(usize::from(ip.total_length()), frame.len());
    let udp = UdpHdr::from_bytes(&frame[20..]).unwrap();
    assert_eq!(udp.dst_port(), ROCE_UDP_PORT);
    let bth = Bth::from_bytes(&frame[28..]).unwrap();
    let info = opcode_info(bth.opcode()).unwrap();
    assert_eq!(info.opcode, Opcode::RcSendOnly);
    assert_eq!(
        (bth.mig_req(), bth.dest_qp(), bth.ack_req(), bth.psn()),
        (true, 0x11, true, 0x12_3456)
    );
    let payload = usize::from(udp.length())
        - UdpHdr::BYTES
        - Bth::BYTES
        - info.ext_len
        - usize::from(bth.pad_cnt())
        - ICRC_BYTES as usize;
    assert_eq!(payload, 8);
    assert!(info.payload.allows(payload, 256));
}

#[test]
fn the_example_congestion_notification_parses() {
    let bth = Bth::from_bytes(&bytes(&["81 00 ff ff 40 00 00 77 00 00 00 00"])).unwrap();
    assert!(bth.becn() && !bth.fecn() && !bth.ack_req());
    assert_eq!((bth.pkey(), bth.dest_qp(), bth.psn()), (0xffff, 0x77, 0));
    let info = opcode_info(bth.opcode()).unwrap();
    assert!(info.is_cnp && !info.is_request && !info.is_response);
    assert_eq!(info.ext_len, 16);
}
