// SPDX-License-Identifier: Apache-2.0
//! Two frames field by field, and two sequences of frames side by side.

use openrnic_spec::AethSyndrome;
use openrnic_testbench::wire::{Ip, Roce};

use super::flow::{is_nak, is_rnr};

/// A field in which two frames differ: its name, what was recorded, what the RTL sent.
pub type FieldDiff = (String, String, String);

fn mac(m: &[u8; 6]) -> String {
    m.map(|b| format!("{b:02x}")).join(":")
}

/// The first bytes that differ, with their offset.
fn bytes(field: &str, recorded: &[u8], rtl: &[u8], out: &mut Vec<FieldDiff>) {
    if recorded == rtl {
        return;
    }
    let at = recorded
        .iter()
        .zip(rtl)
        .position(|(a, b)| a != b)
        .unwrap_or(recorded.len().min(rtl.len()));
    let show = |b: &[u8]| {
        let some: String = b.iter().skip(at).take(8).map(|b| format!("{b:02x}")).collect();
        format!("{} bytes, from {at}: {some}", b.len())
    };
    out.push((field.to_owned(), show(recorded), show(rtl)));
}

/// How many fields were compared, and those that differ. The ICRC of each frame is judged by itself: `icrc` is reported
/// when one is wrong.
pub fn differences(recorded: &Roce, rtl: &Roce) -> (usize, Vec<FieldDiff>) {
    let mut out = Vec::new();
    let mut compared = 0;
    macro_rules! field {
        ($name:literal, $show:expr, $a:expr, $b:expr) => {{
            let (a, b) = ($a, $b);
            compared += 1;
            if a != b {
                let show = $show;
                out.push(($name.to_owned(), show(&a), show(&b)));
            }
        }};
    }
    let hex = |v: &u64| format!("{v:#x}");
    let opt = |v: &Option<u64>| v.map_or("none".to_owned(), |v| format!("{v:#x}"));
    field!("eth.dst", mac, recorded.eth.dst, rtl.eth.dst);
    field!("eth.src", mac, recorded.eth.src, rtl.eth.src);
    field!(
        "eth.tag",
        opt,
        recorded.eth.tag.map(u64::from),
        rtl.eth.tag.map(u64::from)
    );
    field!(
        "eth.type",
        hex,
        u64::from(recorded.eth.ethertype),
        u64::from(rtl.eth.ethertype)
    );
    match (&recorded.ip, &rtl.ip) {
        (Ip::V4(a), Ip::V4(b)) => {
            field!("ip.tos", hex, u64::from(a.tos), u64::from(b.tos));
            field!("ip.id", hex, u64::from(a.id), u64::from(b.id));
            field!("ip.fragment", hex, u64::from(a.fragment), u64::from(b.fragment));
            field!("ip.ttl", hex, u64::from(a.ttl), u64::from(b.ttl));
            field!("ip.len", hex, u64::from(a.total_len), u64::from(b.total_len));
            let right = |ip: &openrnic_testbench::wire::Ipv4| ip.checksum == ip.right_checksum();
            let verdict = |ok: &bool| if *ok { "right" } else { "wrong" }.to_owned();
            field!("ip.checksum", verdict, right(a), right(b));
            field!("ip.src", |v: &std::net::Ipv4Addr| v.to_string(), a.src, b.src);
            field!("ip.dst", |v: &std::net::Ipv4Addr| v.to_string(), a.dst, b.dst);
        }
        (Ip::V6(a), Ip::V6(b)) => {
            field!("ip.tos", hex, u64::from(a.traffic_class), u64::from(b.traffic_class));
            field!("ip.flow_label", hex, u64::from(a.flow_label), u64::from(b.flow_label));
            field!("ip.ttl", hex, u64::from(a.hop_limit), u64::from(b.hop_limit));
            field!("ip.len", hex, u64::from(a.payload_len), u64::from(b.payload_len));
            field!("ip.src", |v: &std::net::Ipv6Addr| v.to_string(), a.src, b.src);
            field!("ip.dst", |v: &std::net::Ipv6Addr| v.to_string(), a.dst, b.dst);
        }
        (a, _) => {
            let name = |v4: bool| if v4 { "4" } else { "6" }.to_owned();
            let v4 = matches!(a, Ip::V4(_));
            out.push(("ip.version".to_owned(), name(v4), name(!v4)));
        }
    }
    field!(
        "udp.src_port",
        hex,
        u64::from(recorded.udp.src_port),
        u64::from(rtl.udp.src_port)
    );
    field!(
        "udp.checksum",
        hex,
        u64::from(recorded.udp.checksum),
        u64::from(rtl.udp.checksum)
    );
    let (a, b) = (&recorded.bth, &rtl.bth);
    field!("bth.opcode", |v: &u8| name(*v), a.opcode, b.opcode);
    field!("bth.se", hex, u64::from(a.solicited), u64::from(b.solicited));
    field!("bth.mig_req", hex, u64::from(a.mig_req), u64::from(b.mig_req));
    field!("bth.pad", hex, u64::from(a.pad_count), u64::from(b.pad_count));
    field!("bth.tver", hex, u64::from(a.version), u64::from(b.version));
    field!("bth.pkey", hex, u64::from(a.pkey), u64::from(b.pkey));
    field!("bth.ecn", hex, u64::from(a.congestion), u64::from(b.congestion));
    field!("bth.dest_qp", hex, u64::from(a.dest_qpn), u64::from(b.dest_qpn));
    field!("bth.ack_req", hex, u64::from(a.ack_req), u64::from(b.ack_req));
    field!(
        "bth.reserved",
        hex,
        u64::from(a.ack_reserved),
        u64::from(b.ack_reserved)
    );
    field!("bth.psn", hex, u64::from(a.psn), u64::from(b.psn));
    let (a, b) = (&recorded.ext, &rtl.ext);
    macro_rules! part {
        ($name:literal, $header:ident, $field:ident) => {
            if a.$header.is_some() || b.$header.is_some() {
                field!(
                    $name,
                    opt,
                    a.$header.map(|h| u64::from(h.$field)),
                    b.$header.map(|h| u64::from(h.$field))
                );
            }
        };
    }
    part!("aeth.syndrome", aeth, syndrome);
    part!("aeth.msn", aeth, msn);
    part!("reth.va", reth, va);
    part!("reth.rkey", reth, rkey);
    part!("reth.len", reth, dma_len);
    part!("atomic.va", atomic, va);
    part!("atomic.rkey", atomic, rkey);
    part!("atomic.swap_add", atomic, swap_add);
    part!("atomic.compare", atomic, compare);
    let imm = |e: &openrnic_testbench::wire::ExtHeaders| e.imm.map(|i| u64::from(u32::from_be_bytes(i)));
    field!("atomic_ack", opt, a.atomic_ack, b.atomic_ack);
    field!("imm", opt, imm(a), imm(b));
    field!("ieth", opt, a.ieth.map(u64::from), b.ieth.map(u64::from));
    bytes("payload", &recorded.payload, &rtl.payload, &mut out);
    bytes("pad", &recorded.pad, &rtl.pad, &mut out);
    // A MAC fills short frames up with zeros; some captures are taken before it, some behind it.
    let filling = |r: &Roce| r.trailer.iter().all(|b| *b == 0) && r.trailer.len() <= 60;
    if !(filling(recorded) && filling(rtl)) {
        bytes("trailer", &recorded.trailer, &rtl.trailer, &mut out);
    }
    let verdict = |ok: &bool| if *ok { "right" } else { "wrong" }.to_owned();
    if !recorded.icrc_ok() || !rtl.icrc_ok() {
        out.push(("icrc".to_owned(), verdict(&recorded.icrc_ok()), verdict(&rtl.icrc_ok())));
    }
    // Payload, pad, trailer, ICRC.
    (compared + 4, out)
}

/// Name of an RC opcode.
pub fn name(opcode: u8) -> String {
    openrnic_spec::opcode_info(opcode).map_or_else(
        || format!("opcode {opcode:#04x}"),
        |i| i.opcode.name().trim_start_matches("RC_").to_owned(),
    )
}

/// A frame in a few words.
pub fn brief(roce: &Roce) -> String {
    let mut text = format!("{} psn {:#08x}", name(roce.bth.opcode), roce.bth.psn);
    if let Some(aeth) = roce.ext.aeth {
        let s = aeth.syndrome;
        if is_rnr(s) {
            text += &format!(" RNR NAK {}", s & 0x1f);
        } else if is_nak(s) {
            let code = match AethSyndrome::try_from(s) {
                Ok(AethSyndrome::NakPsnSeq) => "sequence".to_owned(),
                Ok(AethSyndrome::NakInvReq) => "invalid request".to_owned(),
                Ok(AethSyndrome::NakRemAccess) => "access".to_owned(),
                Ok(AethSyndrome::NakRemOp) => "operation".to_owned(),
                _ => (s & 0x1f).to_string(),
            };
            text += &format!(" NAK {code}");
        }
        text += &format!(" msn {}", aeth.msn);
    }
    if let Some(reth) = roce.ext.reth {
        text += &format!(" len {}", reth.dma_len);
    } else if !roce.payload.is_empty() {
        text += &format!(" {} bytes", roce.payload.len());
    }
    text
}

/// One line of two sequences side by side: index into the first, index into the second.
pub type Aligned = (Option<usize>, Option<usize>);

/// Lines two sequences up with as few gaps as possible. Frames stand side by side when they have the same PSN or the same
/// opcode; both is better.
pub fn align(recorded: &[&Roce], rtl: &[&Roce]) -> Vec<Aligned> {
    let (n, m) = (recorded.len(), rtl.len());
    let cost = |a: &Roce, b: &Roce| match (a.bth.psn == b.bth.psn, a.bth.opcode == b.bth.opcode) {
        (true, true) => 0u32,
        (true, false) => 2,
        (false, true) => 3,
        (false, false) => 100,
    };
    // best[i][j]: cost of what follows i and j.
    let mut best = vec![vec![0u32; m + 1]; n + 1];
    for i in (0..=n).rev() {
        for j in (0..=m).rev() {
            best[i][j] = if i == n {
                2 * (m - j) as u32
            } else if j == m {
                2 * (n - i) as u32
            } else {
                (best[i + 1][j + 1] + cost(recorded[i], rtl[j]))
                    .min(best[i + 1][j] + 2)
                    .min(best[i][j + 1] + 2)
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::with_capacity(n.max(m));
    while i < n || j < m {
        if i < n && j < m && best[i][j] == best[i + 1][j + 1] + cost(recorded[i], rtl[j]) {
            out.push((Some(i), Some(j)));
            (i, j) = (i + 1, j + 1);
        } else if i < n && best[i][j] == best[i + 1][j] + 2 {
            out.push((Some(i), None));
            i += 1;
        } else {
            out.push((None, Some(j)));
            j += 1;
        }
    }
    out
}
