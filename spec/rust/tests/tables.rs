// SPDX-License-Identifier: Apache-2.0
//! The tables against other sources of the same facts.
#![allow(clippy::unwrap_used)] // in the helpers of the tests, too

use std::collections::BTreeMap;

use openrnic_spec::*;

/// The attributes by name, as the Linux header numbers them.
const ATTRS: &[(&str, u32)] = &[
    ("STATE", 0x1),
    ("CUR_STATE", 0x2),
    ("EN_SQD_ASYNC_NOTIFY", 0x4),
    ("ACCESS_FLAGS", 0x8),
    ("PKEY_INDEX", 0x10),
    ("PORT", 0x20),
    ("QKEY", 0x40),
    ("AV", 0x80),
    ("PATH_MTU", 0x100),
    ("TIMEOUT", 0x200),
    ("RETRY_CNT", 0x400),
    ("RNR_RETRY", 0x800),
    ("RQ_PSN", 0x1000),
    ("MAX_QP_RD_ATOMIC", 0x2000),
    ("ALT_PATH", 0x4000),
    ("MIN_RNR_TIMER", 0x8000),
    ("SQ_PSN", 0x1_0000),
    ("MAX_DEST_RD_ATOMIC", 0x2_0000),
    ("PATH_MIG_STATE", 0x4_0000),
    ("CAP", 0x8_0000),
    ("DEST_QPN", 0x10_0000),
    ("RATE_LIMIT", 0x200_0000),
];

fn mask(names: &str) -> u32 {
    names
        .split_whitespace()
        .map(|name| ATTRS.iter().find(|a| a.0 == name).unwrap_or_else(|| panic!("{name}")).1)
        .sum()
}

fn state(name: &str) -> QpState {
    *QpState::ALL
        .iter()
        .find(|s| s.name() == name)
        .unwrap_or_else(|| panic!("{name}"))
}

fn qp_type(name: &str) -> QpType {
    *QpType::ALL
        .iter()
        .find(|s| s.name() == name)
        .unwrap_or_else(|| panic!("{name}"))
}

/// Legal edges of a type as (required, allowed).
type Edges = BTreeMap<(QpState, QpState), (u32, u32)>;

/// Compares all 49 pairs of states.
fn assert_edges(t: QpType, expected: &Edges) {
    for cur in QpState::ALL {
        for next in QpState::ALL {
            let got = qp_edge(t, *cur, *next).map(|e| (e.required.bits(), e.allowed.bits()));
            assert_eq!(got, expected.get(&(*cur, *next)).copied(), "{t} {cur}->{next}");
        }
    }
}

#[test]
fn attribute_bits_are_those_of_linux() {
    let ours: Vec<(&str, u32)> = QpAttrBit::NAMES
        .iter()
        .map(|(flag, name)| (*name, flag.bits()))
        .collect();
    assert_eq!(ours, ATTRS);
}

#[test]
fn transitions_equal_the_table_of_linux() {
    let text = include_str!("../../tests/data/qp_table.json");
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    for (name, bit) in json["bits"].as_object().unwrap() {
        assert_eq!(u64::from(mask(name)), bit.as_u64().unwrap(), "{name}");
    }
    let mut by_type: BTreeMap<QpType, Edges> = BTreeMap::new();
    let rows = json["transitions"].as_array().unwrap();
    assert_eq!(rows.len(), 132);
    for row in rows {
        let number = |key: &str| u32::try_from(row[key].as_u64().unwrap()).unwrap();
        let key = (
            state(row["cur"].as_str().unwrap()),
            state(row["next"].as_str().unwrap()),
        );
        // The file's required masks include STATE.
        let value = (number("req_mask") & !1, number("allow_mask"));
        let old = by_type
            .entry(qp_type(row["qpt"].as_str().unwrap()))
            .or_default()
            .insert(key, value);
        assert_eq!(old, None);
    }
    assert_eq!(by_type.len(), 6);
    for (t, edges) in &by_type {
        assert_edges(*t, edges);
    }
}

#[test]
fn gsi_follows_ud_without_port() {
    let port = mask("PORT");
    let mut expected = Edges::new();
    for cur in QpState::ALL {
        for next in QpState::ALL {
            if let Some(edge) = qp_edge(QpType::Ud, *cur, *next) {
                expected.insert(
                    (*cur, *next),
                    (edge.required.bits() & !port, edge.allowed.bits() & !port),
                );
            }
        }
    }
    assert_eq!(expected.len(), 22);
    assert_edges(QpType::Gsi, &expected);
}

#[test]
fn dci_has_the_transitions_of_mlx5() {
    use QpState::*;
    let mut expected = Edges::new();
    let mut edge = |cur, next, required: &str, optional: &str| {
        expected.insert(
            (cur, next),
            (mask(required), mask("STATE") | mask(required) | mask(optional)),
        );
    };
    edge(Reset, Init, "PKEY_INDEX PORT", "");
    edge(Init, Init, "", "PKEY_INDEX PORT");
    edge(Init, Rtr, "PATH_MTU", "PKEY_INDEX AV");
    edge(
        Rtr,
        Rts,
        "TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC SQ_PSN",
        "MIN_RNR_TIMER",
    );
    edge(Rts, Rts, "", "MIN_RNR_TIMER");
    for cur in QpState::ALL {
        edge(*cur, Reset, "", "");
        if *cur != Reset {
            edge(*cur, Err, "", "");
        }
    }
    assert_edges(QpType::Dci, &expected);
}

#[test]
fn dct_has_two_transitions_and_ends_by_destroy() {
    use QpState::*;
    let mut expected = Edges::new();
    let first = mask("ACCESS_FLAGS PKEY_INDEX PORT");
    let second = mask("MIN_RNR_TIMER AV PATH_MTU");
    expected.insert((Reset, Init), (first, first | 1));
    expected.insert((Init, Rtr), (second, second | 1));
    assert_edges(QpType::Dct, &expected);
}

#[test]
fn a_modify_without_state_is_the_edge_to_itself() {
    for t in QpType::ALL.iter().filter(|t| **t != QpType::Dct) {
        assert!(qp_edge(*t, QpState::Rtr, QpState::Rtr).is_none(), "{t}");
        assert!(qp_edge(*t, QpState::Sqe, QpState::Sqe).is_none(), "{t}");
        for s in [QpState::Reset, QpState::Err] {
            let edge = qp_edge(*t, s, s).unwrap();
            assert_eq!(
                (edge.required, edge.allowed),
                (QpAttrBit::EMPTY, QpAttrBit::STATE),
                "{t} {s}"
            );
        }
    }
}

/// The operations by their low five bits: name, headers after the BTH, payload.
const OPERATIONS: &[(u8, &str, &str, &str)] = &[
    (0x00, "SEND_FIRST", "", "mtu"),
    (0x01, "SEND_MIDDLE", "", "mtu"),
    (0x02, "SEND_LAST", "", "1..mtu"),
    (0x03, "SEND_LAST_IMM", "ImmDt", "1..mtu"),
    (0x04, "SEND_ONLY", "", "0..mtu"),
    (0x05, "SEND_ONLY_IMM", "ImmDt", "0..mtu"),
    (0x06, "WRITE_FIRST", "Reth", "mtu"),
    (0x07, "WRITE_MIDDLE", "", "mtu"),
    (0x08, "WRITE_LAST", "", "1..mtu"),
    (0x09, "WRITE_LAST_IMM", "ImmDt", "1..mtu"),
    (0x0a, "WRITE_ONLY", "Reth", "0..mtu"),
    (0x0b, "WRITE_ONLY_IMM", "Reth ImmDt", "0..mtu"),
    (0x0c, "READ_REQUEST", "Reth", "none"),
    (0x0d, "READ_RESP_FIRST", "Aeth", "mtu"),
    (0x0e, "READ_RESP_MIDDLE", "", "mtu"),
    (0x0f, "READ_RESP_LAST", "Aeth", "1..mtu"),
    (0x10, "READ_RESP_ONLY", "Aeth", "0..mtu"),
    (0x11, "ACKNOWLEDGE", "Aeth", "none"),
    (0x12, "ATOMIC_ACK", "Aeth AtomicAckEth", "none"),
    (0x13, "CMP_SWAP", "AtomicEth", "none"),
    (0x14, "FETCH_ADD", "AtomicEth", "none"),
    (0x16, "SEND_LAST_INV", "Ieth", "1..mtu"),
    (0x17, "SEND_ONLY_INV", "Ieth", "0..mtu"),
];

/// What the table of opcodes in the InfiniBand specification (9.2.1, table 38) says of one.
fn expected_opcode(op: u8) -> Option<(String, Vec<&'static str>, PayloadRule)> {
    let (base, name) = match op >> 5 {
        0 => (0x00, "RC"),
        1 => (0x20, "UC"),
        3 => (0x60, "UD"),
        5 => (0xa0, "XRC"),
        _ if op == 0x81 => return Some(("CNP".to_owned(), vec!["CnpBody"], PayloadRule::None)),
        _ => return None,
    };
    let low = op - base;
    if name == "UC" && low > 0x0b || name == "UD" && low != 0x04 && low != 0x05 {
        return None;
    }
    let (_, operation, headers, payload) = OPERATIONS.iter().find(|o| o.0 == low)?;
    let mut headers: Vec<&str> = headers.split_whitespace().collect();
    if name == "UD" {
        headers.insert(0, "Deth");
    }
    if name == "XRC" && !(0x0d..=0x12).contains(&low) {
        headers.insert(0, "XrcEth");
    }
    let payload = match *payload {
        "mtu" => PayloadRule::Mtu,
        "1..mtu" => PayloadRule::OneToMtu,
        "0..mtu" => PayloadRule::ZeroToMtu,
        _ => PayloadRule::None,
    };
    Some((format!("{name}_{operation}"), headers, payload))
}

#[test]
fn opcodes_equal_the_table_of_the_standard() {
    for op in 0..=255u8 {
        let (got, expected) = (opcode_info(op), expected_opcode(op));
        assert_eq!(got.is_some(), expected.is_some(), "{op:#04x}");
        let (Some(got), Some((name, headers, payload))) = (got, expected) else {
            continue;
        };
        assert_eq!(got.name(), name);
        assert_eq!(got.opcode as u8, op);
        assert_eq!(got.transport as u8, op >> 5, "{name}");
        let names: Vec<String> = got.headers.iter().map(|h| format!("{h:?}")).collect();
        assert_eq!(names, headers, "{name}");
        assert_eq!(got.payload, payload, "{name}");
    }
}

#[test]
fn opcode_properties_follow_from_the_row() {
    let size = |h: &ExtHeader| match h {
        ExtHeader::Reth | ExtHeader::CnpBody => 16,
        ExtHeader::Aeth | ExtHeader::ImmDt | ExtHeader::Ieth | ExtHeader::XrcEth => 4,
        ExtHeader::AtomicEth => 28,
        ExtHeader::AtomicAckEth | ExtHeader::Deth => 8,
    };
    for info in &OPCODES {
        let name = info.name();
        let plain = name.split_once('_').map_or(name, |n| n.1);
        assert_eq!(info.ext_len, info.headers.iter().map(size).sum::<usize>(), "{name}");
        assert_eq!(info.is_send, plain.starts_with("SEND_"), "{name}");
        assert_eq!(info.is_write, plain.starts_with("WRITE_"), "{name}");
        assert_eq!(info.is_read_req, plain == "READ_REQUEST", "{name}");
        assert_eq!(info.is_read_resp, plain.starts_with("READ_RESP_"), "{name}");
        assert_eq!(info.is_ack, plain == "ACKNOWLEDGE", "{name}");
        assert_eq!(
            info.is_atomic_req,
            plain == "CMP_SWAP" || plain == "FETCH_ADD",
            "{name}"
        );
        assert_eq!(info.is_atomic_ack, plain == "ATOMIC_ACK", "{name}");
        assert_eq!(info.is_cnp, name == "CNP", "{name}");
        assert_eq!(
            info.is_response,
            info.is_read_resp || info.is_ack || info.is_atomic_ack,
            "{name}"
        );
        assert_eq!(info.is_request, !info.is_response && !info.is_cnp, "{name}");
        assert_eq!(info.first, plain.contains("_FIRST"), "{name}");
        assert_eq!(info.middle, plain.contains("_MIDDLE"), "{name}");
        assert_eq!(info.last, plain.contains("_LAST"), "{name}");
        assert_eq!(
            info.only,
            !(info.first || info.middle || info.last || info.is_cnp),
            "{name}"
        );
        assert_eq!(info.has_imm, plain.ends_with("_IMM"), "{name}");
        assert_eq!(info.has_ieth, plain.ends_with("_INV"), "{name}");
        let has = |h| info.headers.contains(&h);
        assert_eq!(info.has_reth, has(ExtHeader::Reth), "{name}");
        assert_eq!(info.has_aeth, has(ExtHeader::Aeth), "{name}");
        assert_eq!(info.has_deth, has(ExtHeader::Deth), "{name}");
        assert_eq!(info.has_atomiceth, has(ExtHeader::AtomicEth), "{name}");
        assert_eq!(info.has_atomicack, has(ExtHeader::AtomicAckEth), "{name}");
        assert_eq!(info.has_xrceth, has(ExtHeader::XrcEth), "{name}");
        assert_eq!(info.pay_full, info.payload == PayloadRule::Mtu, "{name}");
        assert_eq!(info.pay_min1, info.payload == PayloadRule::OneToMtu, "{name}");
        assert_eq!(info.pay_none, info.payload == PayloadRule::None, "{name}");
    }
    for (info, op) in OPCODES.iter().zip(Opcode::ALL) {
        assert_eq!(info.opcode, *op);
        assert_eq!(op.info(), info);
    }
}

#[test]
fn payload_rules_bound_the_payload() {
    let allowed = |rule: PayloadRule| [0, 1, 255, 256, 257].map(|len| rule.allows(len, 256));
    assert_eq!(allowed(PayloadRule::Mtu), [false, false, false, true, false]);
    assert_eq!(allowed(PayloadRule::OneToMtu), [false, true, true, true, false]);
    assert_eq!(allowed(PayloadRule::ZeroToMtu), [true, true, true, true, false]);
    assert_eq!(allowed(PayloadRule::None), [true, false, false, false, false]);
}

#[test]
fn rnr_timer_codes_wait_as_the_standard_says() {
    // InfiniBand specification, table 45, in milliseconds.
    let ms = [
        655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84,
        5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
    ];
    for (code, ms) in (0u8..).zip(ms) {
        assert_eq!(f64::from(rnr_timer_ns(code)), (ms * 1e6f64).round(), "code {code}");
    }
}

#[test]
fn registers_lie_where_the_blocks_say() {
    assert_eq!(regs::ID_MAGIC, 0x008);
    assert_eq!(regs::CMD_RING_BASE, 0x308);
    assert_eq!(regs::EQ_DOORBELL, 0x408);
    let mut at = BLOCKS[0].base;
    assert_eq!(at, 0);
    for block in BLOCKS {
        assert_eq!(block.base, at, "{}", block.name);
        at = block.next;
        for reg in block.regs {
            assert_eq!(reg.offset % (reg.width / 8), 0, "{}", reg.name);
            assert!(reg.offset >= block.base + 8 && (block.next == 0 || reg.offset + reg.width / 8 <= block.next));
        }
    }
    assert_eq!(at, 0);
}

#[test]
fn enumerations_convert_both_ways() {
    assert_eq!(QpState::try_from(3), Ok(QpState::Rts));
    assert_eq!(u8::from(QpType::RawPacket), 8);
    assert_eq!(Mtu::Mtu4096 as u8, 5);
    assert_eq!(CmdOpcode::CreateQp.name(), "CREATE_QP");
    assert_eq!(CmdStatus::NoResources.doc(), "not enough free entries");
    assert_eq!(format!("{:<7}|", QpState::Rtr), "RTR    |");
    let error = QpState::try_from(7).unwrap_err();
    assert_eq!(error.to_string(), "0x07 is no QpState");
    for op in CmdOpcode::ALL {
        assert_eq!(CmdOpcode::try_from(*op as u8), Ok(*op));
    }
}

#[test]
fn counters_are_numbered_without_gaps() {
    for (i, counter) in CounterId::ALL.iter().enumerate() {
        assert_eq!(*counter as usize, i, "{counter}");
    }
}

#[test]
fn flags_print_their_names() {
    let flags = QpAttrBit::PORT | QpAttrBit::STATE;
    assert_eq!(flags.to_string(), "STATE | PORT");
    assert_eq!(format!("{flags:?}"), "QpAttrBit(STATE | PORT)");
    assert_eq!(QpAttrBit::EMPTY.to_string(), "0");
    assert_eq!(Access(0x41).to_string(), "LOCAL_WRITE | 0x40");
    assert!(flags.contains(QpAttrBit::PORT) && !flags.contains(QpAttrBit::PORT | QpAttrBit::AV));
    assert!(flags.intersects(QpAttrBit::PORT | QpAttrBit::AV));
    assert_eq!(flags - QpAttrBit::STATE, QpAttrBit::PORT);
    assert_eq!(flags & QpAttrBit::ALL, flags);
}

#[test]
fn reserved_bits_of_a_command_are_those_it_does_not_read() {
    // Every command reads opcode and tag.
    for op in CmdOpcode::ALL {
        let reserved = command(*op).unwrap_or_else(|| panic!("{op}")).reserved;
        assert_eq!((reserved[0], reserved[2], reserved[3]), (0, 0, 0), "{op}");
    }
    let modify = command(CmdOpcode::ModifyQp).unwrap();
    // Flags: LIST and RECORDS are known. Read: handle, count, list_addr and attr_addr.
    assert_eq!(modify.reserved[1], 0b1100_1111);
    let read = |from: usize, to: usize| modify.reserved[from..to].iter().all(|b| *b == 0);
    assert!(read(4, 8) && read(8, 11) && read(48, 64));
    assert!(modify.reserved[11..48].iter().all(|b| *b == 0xff));
    let create = command(CmdOpcode::CreateQp).unwrap();
    assert_eq!(create.reserved[1], 0b1011_0000);
    assert_eq!(create.reserved[23], 0xff);
    assert!(
        create.reserved[56..].iter().all(|b| *b == 0xff),
        "attr_addr is not read"
    );
    assert!(create.reserved[4..23].iter().all(|b| *b == 0));
    let port = command(CmdOpcode::SetPort).unwrap();
    assert_eq!(port.reserved[14..17], [0x00, 0xfe, 0xff]);
}

#[test]
fn budgets_know_which_side_is_good() {
    let most = budget("modify_one").unwrap();
    assert_eq!(
        (most.value, most.unit, most.comparison),
        (8.0, "cycles", Comparison::AtMost)
    );
    assert!(most.holds(8.0) && !most.holds(8.1) && !most.holds(f64::NAN));
    let least = budget("goodput_large").unwrap();
    assert!(least.holds(98.0) && !least.holds(97.9) && !least.holds(f64::NAN));
    assert_eq!(budget("no_such_budget"), None);
}
