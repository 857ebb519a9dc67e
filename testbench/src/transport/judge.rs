// SPDX-License-Identifier: Apache-2.0
//! Follows every frame of two ends: sorts it to its connection, judges what a frame must hold whatever it is for, and tells
//! requester and responder what was sent and what arrived.

use std::collections::{BTreeMap, HashMap};

use super::counters::{Counters, Rejected};
use super::requester::Requester;
use super::responder::Responder;
use super::{Checked, Difference, QpConfig, differ, opcode};
use crate::wire::{Direction, ETHERTYPE_IPV4, ETHERTYPE_IPV6, Ip, Roce, opcode_info, source_port};

/// Addresses of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Ethernet.
    pub mac: [u8; 6],
    /// IPv4.
    pub ip: [u8; 4],
    /// IPv6.
    pub ip6: [u8; 16],
}

/// One direction of a connection: the requester at one end, the responder at the other.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Who asks.
    pub requester: Requester,
    /// Who answers.
    pub responder: Responder,
}

/// A connection: flow n is the one whose requester is at end n.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Numbers of its queue pairs.
    pub qpns: [u32; 2],
    /// Its frames are IPv6 ones.
    pub v6: bool,
    /// Both directions.
    pub flows: [Flow; 2],
}

/// The judge of all frames between two ends.
pub struct Judge {
    addresses: [Address; 2],
    /// By a number that their maker chose.
    pub connections: BTreeMap<usize, Connection>,
    by_qpn: [HashMap<u32, usize>; 2],
    /// What each end must have counted.
    pub counters: [Counters; 2],
    /// The first thing that was wrong.
    pub difference: Option<Difference>,
    /// A device lost frames inside, so that what its responses say cannot be judged until everything is quiet.
    pub muted: bool,
    /// Frames sent.
    pub frames: u64,
}

impl Judge {
    /// One that knows no connection.
    pub fn new(addresses: [Address; 2]) -> Self {
        Self {
            addresses,
            connections: BTreeMap::new(),
            by_qpn: [HashMap::new(), HashMap::new()],
            counters: [Counters::default(), Counters::default()],
            difference: None,
            muted: false,
            frames: 0,
        }
    }

    /// A connection is there; `shared[n]`: end n receives from a shared queue.
    pub fn connect(&mut self, number: usize, configs: [QpConfig; 2], shared: [bool; 2]) {
        let flow = |from: usize| {
            let requester = Requester::new(configs[from], configs[1 - from].qpn);
            let responder = Responder::new(&configs[1 - from], &requester, shared[1 - from]);
            Flow { requester, responder }
        };
        let qpns = configs.map(|c| c.qpn);
        for (end, qpn) in qpns.iter().enumerate() {
            self.by_qpn[end].insert(*qpn, number);
        }
        let flows = [flow(0), flow(1)];
        let v6 = configs[0].v6;
        self.connections.insert(number, Connection { qpns, v6, flows });
    }

    /// A connection is gone; no frame of it is under way.
    pub fn disconnect(&mut self, number: usize) {
        if let Some(c) = self.connections.remove(&number) {
            for (end, qpn) in c.qpns.iter().enumerate() {
                self.by_qpn[end].remove(qpn);
            }
        }
    }

    /// Everything is quiet and acknowledged: goes on from there, whatever was seen.
    pub fn resume(&mut self) {
        self.muted = false;
        for c in self.connections.values_mut() {
            for flow in &mut c.flows {
                flow.requester.resume();
                flow.responder.resume(&flow.requester);
            }
        }
    }

    /// An end has sent a frame.
    pub fn sent(&mut self, end: usize, frame: &[u8], now_ns: u64) {
        self.frames += 1;
        if self.muted {
            self.tally(end, frame);
        } else if self.difference.is_none()
            && let Err(d) = self.judge_sent(end, frame, now_ns)
        {
            self.difference = Some(d);
        }
    }

    /// How often a request is tried is known of frames that are not judged, too: giving up must have its reason.
    fn tally(&mut self, end: usize, frame: &[u8]) {
        let Ok(Roce { bth, .. }) = Roce::parse(frame) else {
            return;
        };
        let number = self.by_qpn[1 - end].get(&bth.dest_qpn);
        if !is_response(bth.opcode)
            && let Some(c) = number.and_then(|n| self.connections.get_mut(n))
        {
            c.flows[end].requester.tally(bth.psn);
        }
    }

    fn judge_sent(&mut self, end: usize, frame: &[u8], now_ns: u64) -> Checked {
        let roce =
            Roce::parse(frame).map_err(|e| Difference::new("frame", format!("end {end} sent {frame:02x?}: {e}")))?;
        let bth = roce.bth;
        let Some(number) = self.by_qpn[1 - end].get(&bth.dest_qpn).copied() else {
            return differ(
                "frame",
                format!("end {end} sent to QP {:#x}, which nobody has", bth.dest_qpn),
            );
        };
        let Some(c) = self.connections.get_mut(&number) else {
            return Ok(());
        };
        let [from, to] = [&self.addresses[end], &self.addresses[1 - end]];
        header(&roce, from, to, c.qpns[end], c.v6).map_err(|text| {
            Difference::new(
                "frame",
                format!("end {end}, opcode {:#04x}, PSN {:#x}: {text}", bth.opcode, bth.psn),
            )
        })?;
        self.counters[end].sent(&roce);
        if is_response(bth.opcode) {
            let flow = &mut c.flows[1 - end];
            flow.responder.emit(&roce, &flow.requester, now_ns)
        } else {
            c.flows[end].requester.emit(&roce, now_ns)
        }
    }

    /// An end has received a frame; `flagged`: its MAC says that it is damaged.
    pub fn received(&mut self, end: usize, frame: &[u8], flagged: bool, now_ns: u64) {
        if self.difference.is_some() || self.muted {
            return;
        }
        let roce = match acceptable(frame, flagged, &self.addresses[end]) {
            Ok(roce) => roce,
            Err(why) => {
                self.counters[end].rejected(why);
                return;
            }
        };
        let bth = roce.bth;
        let connection = self.by_qpn[end]
            .get(&bth.dest_qpn)
            .and_then(|n| self.connections.get_mut(n));
        let Some(c) = connection else {
            self.counters[end].nobody(&roce);
            return;
        };
        if is_response(bth.opcode) {
            let flow = &mut c.flows[end];
            self.counters[end].response(&roce);
            flow.requester.deliver(bth.opcode, bth.psn, &roce.ext, now_ns);
        } else {
            let flow = &mut c.flows[1 - end];
            self.counters[end].request();
            flow.responder.deliver(&roce, &flow.requester, now_ns);
        }
    }
}

fn is_response(op: u8) -> bool {
    op == opcode::ACKNOWLEDGE || op == opcode::ATOMIC_ACKNOWLEDGE || opcode::READ_RESPONSE.contains(&op)
}

/// What every frame must hold.
fn header(roce: &Roce, from: &Address, to: &Address, own_qpn: u32, v6: bool) -> Result<(), String> {
    let bth = &roce.bth;
    let bad = |what: &str, got: String| Err(format!("{what} is {got}"));
    if (roce.eth.src, roce.eth.dst) != (from.mac, to.mac) || roce.eth.tag.is_some() {
        return bad("Ethernet header", format!("{:?}", roce.eth));
    }
    let network_ok = match &roce.ip {
        Ip::V4(ip) => {
            !v6 && ip.src.octets() == from.ip
                && ip.dst.octets() == to.ip
                && ip.checksum == ip.right_checksum()
                && ip.ttl == 64
                && ip.tos == 0
        }
        Ip::V6(ip) => {
            v6 && ip.src.octets() == from.ip6
                && ip.dst.octets() == to.ip6
                && ip.hop_limit == 64
                && ip.traffic_class == 0
                && ip.flow_label == 0
        }
    };
    if !network_ok {
        return bad("network header", format!("{:?}", roce.ip));
    }
    if roce.udp.checksum != 0 {
        return bad("UDP checksum", format!("{:#x}", roce.udp.checksum));
    }
    if roce.udp.src_port != source_port(0, own_qpn, bth.dest_qpn) {
        return bad("UDP source port", format!("{:#x}", roce.udp.src_port));
    }
    if bth.pkey != 0xffff || bth.version != 0 || !bth.mig_req || bth.congestion != 0 || bth.ack_reserved != 0 {
        return bad("BTH", format!("{bth:?}"));
    }
    if !roce.icrc_ok() {
        return bad("ICRC", format!("{:#010x}", roce.icrc));
    }
    if roce.pad.len() != roce.payload.len().wrapping_neg() & 3 || roce.pad.iter().any(|b| *b != 0) {
        return bad("pad", format!("{:?} behind {} bytes", roce.pad, roce.payload.len()));
    }
    let response = is_response(bth.opcode);
    if response && (bth.ack_req || bth.solicited) {
        return bad("BTH of a response", format!("{bth:?}"));
    }
    Ok(())
}

/// The frame, if a receiver may take it.
fn acceptable(frame: &[u8], flagged: bool, own: &Address) -> Result<Roce, Rejected> {
    if flagged {
        return Err(Rejected::Mac);
    }
    let damaged = Rejected::Damaged;
    let roce = Roce::parse(frame).map_err(|_| damaged)?;
    let network_ok = match &roce.ip {
        Ip::V4(ip) => {
            roce.eth.ethertype == ETHERTYPE_IPV4
                && ip.checksum == ip.right_checksum()
                && ip.ttl != 0
                && ip.fragment & 0x3fff == 0
                && ip.dst.octets() == own.ip
        }
        // Its destination does not look at the hop limit (RFC 8200).
        Ip::V6(ip) => roce.eth.ethertype == ETHERTYPE_IPV6 && ip.dst.octets() == own.ip6,
    };
    let known = opcode_info(roce.bth.opcode);
    let good = roce.eth.dst == own.mac
        && network_ok
        && roce.bth.version == 0
        && known.is_some_and(|i| i.direction != Direction::Neither)
        && roce.icrc_ok();
    if good { Ok(roce) } else { Err(damaged) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::super::{Op, Piece, Request, syndrome};
    use super::*;
    use crate::wire::{Aeth, AtomicEth, Bth, Ethernet, ExtHeaders, Ipv4, Reth, Udp};

    const QPNS: [u32; 2] = [0x11, 0x22];
    const FIRST: u32 = 0xff_fffe;

    fn address(n: u8) -> Address {
        Address {
            mac: [2, 0, 0, 0, 0, n + 1],
            ip: [10, 0, 0, n + 1],
            ip6: [n; 16],
        }
    }

    /// A frame as end `from` sends it.
    fn frame(from: usize, opcode: u8, psn: u32, ext: ExtHeaders, payload: &[u8]) -> Roce {
        let (own, peer) = (address(from as u8), address(1 - from as u8));
        let ip = Ipv4 {
            tos: 0,
            total_len: 0,
            id: 0,
            fragment: 0x4000,
            ttl: 64,
            protocol: 17,
            checksum: 0,
            src: own.ip.into(),
            dst: peer.ip.into(),
        };
        Roce {
            eth: Ethernet {
                dst: peer.mac,
                src: own.mac,
                tag: None,
                ethertype: ETHERTYPE_IPV4,
            },
            ip: Ip::V4(ip),
            udp: Udp {
                src_port: source_port(0, QPNS[from], QPNS[1 - from]),
                dst_port: 4791,
                length: 0,
                checksum: 0,
            },
            bth: Bth {
                opcode,
                mig_req: true,
                pkey: 0xffff,
                dest_qpn: QPNS[1 - from],
                psn: psn & 0xff_ffff,
                ..Bth::default()
            },
            ext,
            payload: payload.to_vec(),
            pad: Vec::new(),
            icrc: 0,
            trailer: Vec::new(),
        }
        .finish()
    }

    fn asking(mut roce: Roce) -> Roce {
        roce.bth.ack_req = true;
        roce.seal()
    }

    fn ack(psn: u32, syndrome: u8, msn: u32) -> Roce {
        let ext = ExtHeaders {
            aeth: Some(Aeth { syndrome, msn }),
            ..ExtHeaders::default()
        };
        frame(1, opcode::ACKNOWLEDGE, psn, ext, &[])
    }

    fn config(end: usize) -> QpConfig {
        QpConfig {
            qpn: QPNS[end],
            mtu: 256,
            sq_psn: if end == 0 { FIRST } else { 77 },
            timeout: 5,
            retry_cnt: 1,
            rnr_retry: 7,
            min_rnr_timer: 12,
            max_rd_atomic: 1,
            rights: 14,
            v6: false,
        }
    }

    fn request(op: Op, len: u32) -> Request {
        Request {
            wr_id: 1,
            op,
            pieces: vec![Piece { addr: 0, len, key: 1 }],
            inline: None,
            signaled: true,
            solicited: false,
            fence: false,
            imm: 0x0102_0304,
            va: 0x1000,
            rkey: 0x200,
            operands: (0, 5),
            named: None,
            after: None,
        }
    }

    /// The judge of a conversation and its clock.
    struct Talk {
        judge: Judge,
        now: u64,
    }

    const SECOND: u64 = 1_000_000;

    impl Talk {
        fn new() -> Self {
            let mut judge = Judge::new([address(0), address(1)]);
            judge.connect(0, [config(0), config(1)], [false; 2]);
            Self { judge, now: SECOND }
        }

        fn flow(&mut self) -> &mut Flow {
            &mut self.judge.connections.get_mut(&0).unwrap().flows[0]
        }

        fn receives(&mut self, n: usize) {
            for _ in 0..n {
                self.flow().responder.post_receive(0);
            }
        }

        /// Posts a request whose bytes are all 9, and whose answer is all 7.
        fn post(&mut self, r: Request) {
            let len = r.len();
            let (payload, result) = if r.op.has_response() {
                (Vec::new(), vec![7; len])
            } else {
                (vec![9; len], Vec::new())
            };
            self.flow().requester.post(r, payload, result, None, false);
        }

        /// A frame is sent, and arrives when it is not lost.
        fn say(&mut self, roce: &Roce, lost: bool) {
            let from = usize::from(roce.eth.src[5]) - 1;
            self.now += 1000;
            self.judge.sent(from.min(1), &roce.emit(), self.now);
            if !lost {
                self.now += 1000;
                self.judge.received(1 - from.min(1), &roce.emit(), false, self.now);
            }
        }

        fn kind(&self) -> Option<&str> {
            self.judge.difference.as_ref().map(|d| d.kind.as_str())
        }

        fn settled(&mut self) -> Checked {
            let now = self.now + SECOND;
            let flow = self.flow();
            flow.responder.settled(&flow.requester, now)?;
            flow.requester.settled()
        }
    }

    /// SEND, WRITE, READ, atomic, SEND with immediate, across the PSN wrap.
    fn conversation() -> (Talk, Vec<Roce>) {
        let mut talk = Talk::new();
        talk.receives(2);
        for (op, len) in [
            (Op::Send, 300),
            (Op::Write, 10),
            (Op::Read, 600),
            (Op::FetchAdd, 8),
            (Op::SendImm, 0),
        ] {
            talk.post(request(op, len));
        }
        let none = ExtHeaders::default();
        let reth = |dma_len| ExtHeaders {
            reth: Some(Reth {
                va: 0x1000,
                rkey: 0x200,
                dma_len,
            }),
            ..none
        };
        let atomic = ExtHeaders {
            atomic: Some(AtomicEth {
                va: 0x1000,
                rkey: 0x200,
                swap_add: 5,
                compare: 0,
            }),
            ..none
        };
        let imm = ExtHeaders {
            imm: Some([1, 2, 3, 4]),
            ..none
        };
        let aeth = |msn| ExtHeaders {
            aeth: Some(Aeth {
                syndrome: syndrome::ACK,
                msn,
            }),
            ..none
        };
        let result = ExtHeaders {
            atomic_ack: Some(0x0707_0707_0707_0707),
            ..aeth(4)
        };
        let frames = vec![
            frame(0, opcode::SEND[0], FIRST, none, &[9; 256]),
            asking(frame(0, opcode::SEND[2], FIRST + 1, none, &[9; 44])),
            ack(FIRST + 1, syndrome::ACK, 1),
            asking(frame(0, opcode::WRITE[4], 0, reth(10), &[9; 10])),
            ack(0, syndrome::ACK, 2),
            frame(0, opcode::READ_REQUEST, 1, reth(600), &[]),
            frame(1, opcode::READ_RESPONSE[0], 1, aeth(3), &[7; 256]),
            frame(1, opcode::READ_RESPONSE[1], 2, none, &[7; 256]),
            frame(1, opcode::READ_RESPONSE[2], 3, aeth(3), &[7; 88]),
            frame(0, opcode::FETCH_ADD, 4, atomic, &[]),
            frame(1, opcode::ATOMIC_ACKNOWLEDGE, 4, result, &[]),
            asking(frame(0, opcode::SEND[5], 5, imm, &[])),
            ack(5, syndrome::ACK, 5),
        ];
        (talk, frames)
    }

    #[test]
    fn a_right_conversation_is_right() {
        let (mut talk, frames) = conversation();
        for f in &frames {
            talk.say(f, false);
            assert_eq!(talk.judge.difference, None);
        }
        talk.settled().unwrap();
    }

    type Change = fn(&mut Roce);

    #[test]
    fn each_field_of_each_frame_that_is_wrong_is_noticed() {
        let changes: &[(usize, &str, Change)] = &[
            (0, "request", |f| f.bth.opcode = opcode::SEND[4]),
            (0, "request", |f| f.payload[255] ^= 1),
            (0, "request", |f| f.bth.solicited = true),
            (0, "PSN skipped", |f| f.bth.psn += 1),
            (0, "frame", |f| f.bth.dest_qpn = 0x23),
            (0, "frame", |f| f.bth.mig_req = false),
            (0, "frame", |f| f.bth.pkey = 0x7fff),
            (0, "frame", |f| f.bth.ack_reserved = 1),
            (0, "frame", |f| f.udp.src_port ^= 1),
            (0, "frame", |f| f.eth.dst[5] ^= 1),
            (1, "request", |f| f.bth.ack_req = false),
            (1, "request", |f| f.payload.truncate(40)),
            (2, "acknowledge of nothing", |f| {
                f.bth.psn = 0;
                f.ext.aeth = Some(Aeth {
                    syndrome: syndrome::ACK,
                    msn: 2,
                });
            }),
            (2, "MSN", |f| {
                f.ext.aeth = Some(Aeth {
                    syndrome: syndrome::ACK,
                    msn: 2,
                })
            }),
            (2, "syndrome", |f| f.ext.aeth = Some(Aeth { syndrome: 3, msn: 1 })),
            (2, "frame", |f| f.bth.solicited = true),
            (2, "NAK", |f| {
                f.ext.aeth = Some(Aeth {
                    syndrome: syndrome::ACCESS,
                    msn: 0,
                })
            }),
            (2, "RNR NAK", |f| {
                f.bth.psn = FIRST;
                f.ext.aeth = Some(Aeth { syndrome: 0x2c, msn: 0 });
            }),
            (2, "sequence NAK", |f| {
                f.bth.psn = 0;
                f.ext.aeth = Some(Aeth {
                    syndrome: syndrome::SEQUENCE,
                    msn: 1,
                });
            }),
            (3, "request", |f| f.ext.reth.as_mut().unwrap().va += 1),
            (3, "request", |f| f.ext.reth.as_mut().unwrap().rkey += 1),
            (3, "request", |f| f.ext.reth.as_mut().unwrap().dma_len += 1),
            (5, "request", |f| f.ext.reth.as_mut().unwrap().dma_len -= 1),
            (6, "response", |f| f.bth.opcode = opcode::READ_RESPONSE[3]),
            (6, "response out of order", |f| f.bth.psn += 1),
            (6, "READ data", |f| f.payload[7] = 8),
            (6, "response", |f| {
                f.ext.aeth = Some(Aeth {
                    syndrome: syndrome::ACK,
                    msn: 2,
                })
            }),
            (8, "response", |f| f.payload.push(7)),
            (9, "request", |f| f.ext.atomic.as_mut().unwrap().swap_add = 6),
            (9, "request", |f| f.ext.atomic.as_mut().unwrap().compare = 1),
            (10, "result of an atomic", |f| f.ext.atomic_ack = Some(1)),
            (10, "response", |f| {
                f.ext.aeth = Some(Aeth {
                    syndrome: syndrome::ACK,
                    msn: 3,
                })
            }),
            (11, "request", |f| f.ext.imm = Some([4, 3, 2, 1])),
            (12, "acknowledge goes back", |f| f.bth.psn = 3),
        ];
        for (at, kind, change) in changes {
            let (mut talk, mut frames) = conversation();
            change(&mut frames[*at]);
            frames[*at] = frames[*at].clone().finish();
            for f in &frames[..=*at] {
                assert_eq!(talk.kind(), None, "before frame {at} and {kind}");
                talk.say(f, false);
            }
            assert_eq!(talk.kind(), Some(*kind), "frame {at}: {:?}", talk.judge.difference);
        }
        let (mut talk, mut frames) = conversation();
        frames[0].icrc ^= 1;
        talk.say(&frames[0], false);
        assert_eq!(talk.kind(), Some("frame"));
    }

    #[test]
    fn each_response_that_is_missing_is_noticed() {
        for at in [2, 4, 8, 10, 12] {
            let (mut talk, frames) = conversation();
            for f in &frames[..at] {
                talk.say(f, false);
            }
            assert_eq!(talk.settled().unwrap_err().kind, "response missing", "frame {at}");
        }
        // And what was never sent.
        let (mut talk, frames) = conversation();
        for f in &frames[..5] {
            talk.say(f, false);
        }
        assert_eq!(talk.settled().unwrap_err().kind, "not acknowledged");
    }

    #[test]
    fn packets_come_again_only_for_a_reason_and_only_from_where_they_are_missing() {
        let (mut talk, frames) = conversation();
        for f in &frames[..2] {
            talk.say(f, true);
        }
        let begun = talk.now;
        talk.say(&frames[0], true);
        assert_eq!(talk.kind(), Some("sent again without a reason"));
        // After a time-out they may, but not as often as they like.
        let (mut talk, frames) = conversation();
        for f in &frames[..2] {
            talk.say(f, true);
        }
        for n in 1..5 {
            talk.now = begun + n * super::super::timeout_ns(5);
            talk.say(&frames[0], true);
            talk.say(&frames[1], true);
        }
        assert_eq!(talk.kind(), Some("retry_cnt"));
        // Not what was acknowledged long before.
        let (mut talk, frames) = conversation();
        for f in &frames[..5] {
            talk.say(f, false);
        }
        talk.now += SECOND;
        talk.say(&frames[3], true);
        talk.now += SECOND;
        talk.say(&frames[0], true);
        assert_eq!(talk.kind(), Some("wrong place to go back to"));
        // Nor something that nobody posted.
        let (mut talk, frames) = conversation();
        for f in &frames {
            talk.say(f, false);
        }
        talk.say(&asking(frame(0, opcode::SEND[4], 6, ExtHeaders::default(), &[])), false);
        assert_eq!(talk.kind(), Some("request of nothing"));
    }

    #[test]
    fn a_gap_is_told_once_and_a_duplicate_is_acknowledged_once() {
        let nak = ack(FIRST, syndrome::SEQUENCE, 0);
        for twice in [false, true] {
            let (mut talk, frames) = conversation();
            talk.say(&frames[0], true);
            talk.say(&frames[1], false);
            talk.say(&nak, false);
            if twice {
                talk.say(&nak, false);
                assert_eq!(talk.kind(), Some("second NAK of a gap"));
                continue;
            }
            for f in &frames {
                talk.say(f, false);
            }
            assert_eq!(talk.judge.difference, None);
            talk.settled().unwrap();
        }
        // The NAK must come.
        let (mut talk, frames) = conversation();
        talk.say(&frames[0], true);
        talk.say(&frames[1], false);
        assert_eq!(talk.settled().unwrap_err().kind, "response missing");
        // A duplicate has one acknowledge more.
        let (mut talk, frames) = conversation();
        for f in &frames[..5] {
            talk.say(f, false);
        }
        let copy = frames[3].emit();
        let now = talk.now;
        talk.judge.received(1, &copy, false, now);
        talk.say(&frames[4], false);
        assert_eq!(talk.judge.difference, None);
        talk.say(&frames[4], false);
        assert_eq!(talk.kind(), Some("acknowledge unasked"));
    }

    #[test]
    fn an_acknowledge_does_not_overtake_a_read_and_reads_have_their_limit() {
        let (mut talk, frames) = conversation();
        for f in &frames[..7] {
            talk.say(f, false);
        }
        talk.say(&ack(3, syndrome::ACK, 3), false);
        assert_eq!(talk.kind(), Some("acknowledge overtakes"));
        let (mut talk, frames) = conversation();
        for f in &frames[..8] {
            talk.say(f, false);
        }
        talk.say(&frames[9], false);
        assert_eq!(talk.kind(), Some("max_rd_atomic"));
        // A fence waits for the READ before it.
        let mut talk = Talk::new();
        talk.receives(1);
        talk.post(request(Op::Read, 600));
        talk.post(Request {
            fence: true,
            ..request(Op::SendImm, 0)
        });
        let mut read = frames[5].clone();
        read.bth.psn = FIRST;
        talk.say(&read.seal(), false);
        let mut send = frames[11].clone();
        send.bth.psn = (FIRST + 3) & 0xff_ffff;
        talk.say(&send.seal(), false);
        assert_eq!(talk.kind(), Some("fence"));
    }

    #[test]
    fn a_receiver_that_is_not_ready_is_waited_for() {
        let wait = super::super::rnr_timer_ns(12);
        for (after, kind) in [(wait / 2, Some("RNR timer")), (wait, None)] {
            let mut talk = Talk::new();
            talk.post(request(Op::SendImm, 0));
            let mut send = conversation().1[11].clone();
            send.bth.psn = FIRST;
            let send = send.seal();
            talk.say(&send, false);
            talk.say(&ack(FIRST, 0x20 | 12, 0), false);
            assert_eq!(talk.judge.difference, None);
            talk.now += after;
            talk.say(&send, false);
            assert_eq!(talk.kind(), kind);
        }
        // Somebody who has a receive must take it.
        let mut talk = Talk::new();
        talk.receives(1);
        talk.post(request(Op::SendImm, 0));
        let mut send = conversation().1[11].clone();
        send.bth.psn = FIRST;
        talk.say(&send.seal(), false);
        talk.say(&ack(FIRST, 0x20 | 12, 0), false);
        assert_eq!(talk.kind(), Some("RNR NAK"));
    }
}
