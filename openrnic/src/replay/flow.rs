// SPDX-License-Identifier: Apache-2.0
//! A recorded capture as conversations: who asked whom, which frame answers what, which frame never arrived.

use std::collections::BTreeSet;
use std::fmt;

use openrnic_driver::Gid;
use openrnic_spec::{AethSyndrome, OpcodeInfo, PayloadRule, Transport, opcode_info};
use openrnic_testbench::wire::{Frame, Ip, Roce};

/// A syndrome is an RNR NAK; its timer is in the low five bits.
pub fn is_rnr(syndrome: u8) -> bool {
    syndrome & 0xe0 == AethSyndrome::RnrBase as u8
}

/// A syndrome is a NAK that is no RNR NAK; its code is in the low five bits.
pub fn is_nak(syndrome: u8) -> bool {
    syndrome & 0xe0 == AethSyndrome::NakPsnSeq as u8
}

/// An end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// MAC address.
    pub mac: [u8; 6],
    /// GID; that of IPv4 is mapped.
    pub gid: Gid,
}

fn gids(ip: &Ip) -> (Gid, Gid) {
    match ip {
        Ip::V4(ip) => (Gid::from_ipv4(ip.src.octets()), Gid::from_ipv4(ip.dst.octets())),
        Ip::V6(ip) => (Gid(ip.src.octets()), Gid(ip.dst.octets())),
    }
}

fn ends(roce: &Roce) -> (End, End) {
    let (src, dst) = gids(&roce.ip);
    (
        End {
            mac: roce.eth.src,
            gid: src,
        },
        End {
            mac: roce.eth.dst,
            gid: dst,
        },
    )
}

/// A recorded frame of a conversation.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its number in the capture, from 1, as Wireshark counts.
    pub number: usize,
    /// The frame.
    pub roce: Roce,
    /// A request; otherwise a response.
    pub request: bool,
    /// What came later shows that it did not arrive.
    pub lost: bool,
}

impl Event {
    /// What its opcode says; nothing for an unknown one.
    pub fn info(&self) -> Option<&'static OpcodeInfo> {
        opcode_info(self.roce.bth.opcode)
    }

    /// What its opcode says, by a question.
    pub fn is(&self, what: impl Fn(&OpcodeInfo) -> bool) -> bool {
        self.info().is_some_and(what)
    }

    /// Starts a message.
    pub fn starts(&self) -> bool {
        self.is(|i| i.first || i.only)
    }

    /// Ends a message; an unknown opcode is one of its own.
    pub fn ends(&self) -> bool {
        !self.is(|i| i.first || i.middle)
    }

    /// Takes a receive WQE when it arrives.
    pub fn takes_receive(&self) -> bool {
        self.is(|i| i.is_send && (i.first || i.only) || i.is_write && i.has_imm)
    }

    /// A READ or an atomic: its answer is its result.
    pub fn asks(&self) -> bool {
        self.is(|i| i.is_read_req || i.is_atomic_req)
    }

    /// Part of the answer to a READ.
    pub fn is_read_data(&self) -> bool {
        self.is(|i| i.is_read_resp)
    }

    /// A response with this syndrome.
    pub fn says(&self, syndrome: AethSyndrome) -> bool {
        self.syndrome() == Some(syndrome as u8)
    }

    /// Its PSN.
    pub fn psn(&self) -> u32 {
        self.roce.bth.psn
    }

    /// Syndrome of a response that has one.
    pub fn syndrome(&self) -> Option<u8> {
        self.roce.ext.aeth.map(|a| a.syndrome)
    }

    /// PSNs that a request takes: a READ as many as its responses.
    pub fn psns(&self, mtu: u32) -> u32 {
        match self.roce.ext.reth {
            Some(r) if self.is(|i| i.is_read_req) => r.dma_len.div_ceil(mtu).max(1),
            _ => 1,
        }
    }

    /// A response is asked for.
    fn wants_answer(&self) -> bool {
        self.roce.bth.ack_req || self.asks()
    }
}

/// How far PSN `a` is after `b`, around the wrap.
pub fn after(a: u32, b: u32) -> i32 {
    ((a.wrapping_sub(b) << 8) as i32) >> 8
}

/// The requests from one end to one QP of another, and what answered them.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Who asked.
    pub requester: End,
    /// Who answered.
    pub responder: End,
    /// The responder's QP.
    pub qpn: u32,
    /// The requester's QP; `None` when nothing was answered.
    pub peer_qpn: Option<u32>,
    /// The frames in the order of the capture.
    pub events: Vec<Event>,
    /// Bytes of the path MTU.
    pub mtu: u32,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} to QP {:#08x} of {}",
            self.requester.gid, self.qpn, self.responder.gid
        )
    }
}

impl Flow {
    /// The recorded responses.
    pub fn responses(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|e| !e.request)
    }

    /// The responses between event `i` and the next request with the same PSN.
    pub fn answers_to(&self, i: usize) -> impl Iterator<Item = &Event> {
        let psn = self.events.get(i).map(Event::psn);
        self.events
            .iter()
            .skip(i + 1)
            .take_while(move |e| !(e.request && Some(e.psn()) == psn))
            .filter(|e| !e.request)
    }

    /// The syndrome that answered exactly event `i`.
    pub fn syndrome_of(&self, i: usize) -> Option<u8> {
        let psn = self.events.get(i)?.psn();
        self.answers_to(i).find(|e| e.psn() == psn)?.syndrome()
    }

    /// Payload and packets of the message that starts with event `i`, each PSN once.
    pub fn message(&self, i: usize) -> Vec<&Event> {
        let mut out = Vec::new();
        let Some(first) = self.events.get(i) else { return out };
        out.push(first);
        while let Some(last) = out.last()
            && !last.ends()
        {
            let psn = last.psn().wrapping_add(1) & 0xff_ffff;
            match self.events[i..].iter().find(|e| e.request && e.psn() == psn) {
                Some(next) if !next.starts() => out.push(next),
                _ => break,
            }
        }
        out
    }

    fn find_mtu(&self) -> u32 {
        let valid = [256u32, 512, 1024, 2048, 4096];
        let whole = self
            .events
            .iter()
            .filter(|e| e.is(|i| i.payload == PayloadRule::Mtu))
            .map(|e| e.roce.payload.len() as u32)
            .filter(|len| valid.contains(len))
            .max();
        let longest = self
            .events
            .iter()
            .map(|e| e.roce.payload.len() as u32)
            .max()
            .unwrap_or(0);
        whole.unwrap_or_else(|| valid.into_iter().find(|m| *m >= longest.max(1024)).unwrap_or(4096))
    }

    /// Marks what did not arrive. A request was lost when it is sent again after a sequence NAK that names it, or when it
    /// asked for an answer and none came before it was sent again. A response was lost when the requester later sends
    /// again what the response had settled.
    fn find_losses(&mut self) {
        let mtu = self.mtu;
        let lost: Vec<bool> = (0..self.events.len())
            .map(|i| {
                let e = &self.events[i];
                let later = &self.events[i + 1..];
                let psn = e.psn();
                if e.request {
                    let Some(again) = later
                        .iter()
                        .position(|r| r.request && r.psn() == psn && r.roce.bth.opcode == e.roce.bth.opcode)
                    else {
                        return false;
                    };
                    let between = later[..again].iter().filter(|r| !r.request);
                    let mut answered = false;
                    for r in between {
                        if r.says(AethSyndrome::NakPsnSeq) && r.psn() == psn {
                            return true;
                        }
                        // A sequence NAK for an earlier one is why this one is sent again.
                        answered |= after(r.psn(), psn) >= 0 || r.says(AethSyndrome::NakPsnSeq);
                    }
                    e.wants_answer() && !answered
                } else if e.syndrome().is_some_and(|s| is_rnr(s) || is_nak(s)) {
                    false
                } else if e.is_read_data() {
                    // The request again, or the rest of it from here.
                    later.iter().any(|r| {
                        r.request
                            && r.is(|i| i.is_read_req)
                            && after(psn, r.psn()) >= 0
                            && after(psn, r.psn()) < r.psns(mtu) as i32
                    })
                } else {
                    later.iter().any(|r| r.request && after(psn, r.psn()) >= 0)
                }
            })
            .collect();
        for (e, lost) in self.events.iter_mut().zip(lost) {
            e.lost = lost;
        }
        // Of a burst of READ responses that is asked for again, what arrived after the lost one did arrive.
        let mut since_request = BTreeSet::new();
        for e in &mut self.events {
            if e.request {
                since_request.clear();
            } else if e.lost && e.is_read_data() && !since_request.is_empty() {
                e.lost = false;
            } else if e.lost {
                since_request.insert(e.number);
            }
        }
    }
}

/// A capture, taken apart.
#[derive(Debug, Clone, Default)]
pub struct Conversations {
    /// The conversations of RC QPs, by their first frame.
    pub flows: Vec<Flow>,
    /// Responses that answer no recorded request: frame number and opcode.
    pub orphans: Vec<(usize, u8)>,
    /// Frames of other transports and frames that are not RoCEv2: number and what they are.
    pub others: Vec<(usize, String)>,
    /// Frames in all.
    pub frames: usize,
}

/// Takes a capture apart.
pub fn conversations(frames: &[Vec<u8>]) -> Conversations {
    let mut all = Conversations {
        frames: frames.len(),
        ..Conversations::default()
    };
    for (i, bytes) in frames.iter().enumerate() {
        let number = i + 1;
        let roce = match Frame::parse(bytes) {
            Frame::Roce(roce) => *roce,
            Frame::Opaque(_, why) => {
                all.others.push((number, why.to_string()));
                continue;
            }
        };
        let opcode = roce.bth.opcode;
        let transport = Transport::try_from(opcode >> 5);
        if transport != Ok(Transport::Rc) {
            let name = transport.map_or("an unknown transport", Transport::name);
            all.others.push((number, name.to_owned()));
            continue;
        }
        let (from, to) = ends(&roce);
        let response = opcode_info(opcode).is_some_and(|i| i.is_response);
        let (qpn, psn) = (roce.bth.dest_qpn, roce.bth.psn);
        let event = Event {
            number,
            roce,
            request: !response,
            lost: false,
        };
        if response {
            // PSNs tell which of several conversations of the same two hosts it belongs to.
            let fits = |f: &Flow| {
                f.requester == to
                    && f.responder == from
                    && f.peer_qpn.is_none_or(|q| q == qpn)
                    && f.events
                        .iter()
                        .any(|e| e.request && (0..0x1000).contains(&after(psn, e.psn())))
            };
            let known = all.flows.iter().position(|f| fits(f) && f.peer_qpn == Some(qpn));
            match known
                .or_else(|| all.flows.iter().position(fits))
                .and_then(|at| all.flows.get_mut(at))
            {
                Some(flow) => {
                    flow.peer_qpn = Some(qpn);
                    flow.events.push(event);
                }
                None => all.orphans.push((number, opcode)),
            }
        } else {
            let at = all
                .flows
                .iter()
                .position(|f| f.requester == from && f.responder == to && f.qpn == qpn);
            match at.and_then(|at| all.flows.get_mut(at)) {
                Some(flow) => flow.events.push(event),
                None => all.flows.push(Flow {
                    requester: from,
                    responder: to,
                    qpn,
                    peer_qpn: None,
                    events: vec![event],
                    mtu: 0,
                }),
            }
        }
    }
    for flow in &mut all.flows {
        flow.mtu = flow.find_mtu();
        flow.find_losses();
    }
    all
}
