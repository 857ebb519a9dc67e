// SPDX-License-Identifier: Apache-2.0
//! Bad frames in the middle of a live connection of two whole NICs, at both widths: malformed and misdirected ones put on the wire
//! beside its traffic, and its own frames changed on their way. What is dropped is counted by its reason and harms nothing; what the
//! standard answers with the end of the connection ends it as both ends are to see it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::rc::Rc;

use openrnic_driver::spec::{CounterId, EventType, Mtu, QpState, QpType, WcOpcode, WcStatus};
use openrnic_driver::{Gid, MemoryRegion, QpAttr, QpInit, QueuePair, RecvWr, SendWr, WorkCompletion, attr};
use openrnic_sim::NicBus;
use openrnic_sim::wire::{Action, Direction, Rule, WireParams, frame};
use openrnic_testbench::e2e::{End, Pair, PairParams, all_access};
use openrnic_testbench::wire::{Bth, ExtHeaders, Ip, Ipv4, Reth, Roce, opcode_info};

#[path = "bad_frames/changes.rs"]
mod changes;
#[path = "bad_frames/strays.rs"]
mod strays;

use changes::{Ask, Change, Hears, Outcome, requests, responses};
use strays::{Bad, Others, malformed, misdirected, untimely};

type Qp = QueuePair<NicBus>;
type Mr = MemoryRegion<NicBus>;

const BUDGET: u64 = 1_000_000;
const MTU: usize = 256;
/// First PSN of end 0; that of end 1 is 9.
const PSN: u32 = 0xff_fffe;
/// Bytes of the frames' targets.
const SIZE: usize = 8192;

/// Counters of refused frames.
const DROPS: [CounterId; 15] = [
    CounterId::RxDropMacErr,
    CounterId::RxDropDmac,
    CounterId::RxDropNotRoce,
    CounterId::RxDropIpHdr,
    CounterId::RxDropLength,
    CounterId::RxDropOpcode,
    CounterId::RxDropTver,
    CounterId::RxDropIcrc,
    CounterId::RxDropOverflow,
    CounterId::RxDropQpn,
    CounterId::RxDropQpType,
    CounterId::RxDropPkey,
    CounterId::RxDropAddr,
    CounterId::RxDropQkey,
    CounterId::RxDropDip,
];

/// Runs a test on two NICs at 64 and 512 bits. A line that the host keeps up with: no frame is lost for want of room.
fn each_width(test: impl Fn(Pair)) {
    for width in [64, 512] {
        println!("width {width}");
        let wire = WireParams {
            rate_gbps: Some(4.0),
            ..WireParams::default()
        };
        let params = PairParams {
            wire,
            ..PairParams::new(width, openrnic_testbench::seed(1))
        };
        let pair = Pair::new(params).unwrap();
        test(pair);
    }
}

/// A connected pair that waits 4.096 us * 2^timeout for an answer.
fn connect(pair: &Pair, timeout: u8) -> [Qp; 2] {
    let qps: [Qp; 2] = pair.install(1).unwrap().map(|batch| batch.qps().pop().unwrap());
    for n in 0..2 {
        let (rtr, mut rts) = pair.connect_attrs(n, &qps[1 - n], Mtu::Mtu256, [PSN, 9]);
        rts.timeout = timeout;
        qps[n].modify(&rtr, attr::RTR_MASK).unwrap();
        qps[n].modify(&rts, attr::RTS_MASK).unwrap();
    }
    qps
}

fn counters(pair: &Pair, n: usize) -> openrnic_driver::Counters {
    pair.ends[n].device.counters().unwrap()
}

// ---------------------------------------------------------------------------------------------- changing frames

/// The frame with a change and a right ICRC.
fn with(base: &Roce, change: impl FnOnce(&mut Roce)) -> Roce {
    let mut roce = base.clone();
    change(&mut roce);
    roce.seal()
}

/// The frame with a change of its IPv4 header, whose checksum is right again.
fn with_ip(base: &Roce, change: impl FnOnce(&mut Ipv4)) -> Roce {
    with(base, |r| {
        let Ip::V4(ip) = &mut r.ip else { panic!("{r:?}") };
        change(ip);
        ip.checksum = ip.right_checksum();
    })
}

/// Another operation with so many bytes of payload; headers that both have stay.
fn become_op(r: &mut Roce, opcode: u8, payload: usize) {
    let zeroed = ExtHeaders::zeroed(&opcode_info(opcode).unwrap());
    let old = r.ext;
    r.bth.opcode = opcode;
    r.ext = ExtHeaders {
        reth: zeroed.reth.map(|z| old.reth.unwrap_or(z)),
        aeth: zeroed.aeth.map(|z| old.aeth.unwrap_or(z)),
        atomic: zeroed.atomic.map(|z| old.atomic.unwrap_or(z)),
        ..zeroed
    };
    r.payload = vec![0x66; payload];
    *r = r.clone().finish();
}

fn op(base: &Roce, opcode: u8, payload: usize) -> Roce {
    let mut r = base.clone();
    become_op(&mut r, opcode, payload);
    r
}

// ---------------------------------------------------------------------------------------------- beside the traffic

/// The last request and the last response that are seen on the wire of this pair.
fn templates(pair: &Pair, a: &Qp, source: &Mr, target: &Mr) -> (Roce, Roce) {
    let seen = Rc::new(RefCell::new(Vec::<(usize, Vec<u8>)>::new()));
    let note = seen.clone();
    pair.world.borrow_mut().wire().observe(move |e| {
        let few = note.borrow().len() < 2;
        if e.direction == Direction::Out && few {
            note.borrow_mut().push((e.nic, e.frame.to_vec()));
        }
    });
    a.post_send(&[SendWr::write(1, vec![source.sge(0, 8)], target.iova(), target.rkey())])
        .unwrap();
    let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
    assert_eq!(done[0].status, WcStatus::Success);
    pair.run(500).unwrap();
    let seen = seen.borrow();
    let [(0, request), (1, ack)] = &seen[..] else {
        panic!("{seen:?}")
    };
    (Roce::parse(request).unwrap(), Roce::parse(ack).unwrap())
}

/// Puts a frame on the wire.
fn inject(pair: &Pair, bad: &Bad) {
    let mut world = pair.world.borrow_mut();
    let now = world.cycle();
    world.wire().inject(now, bad.to, &bad.frame, bad.mac_error, 0).unwrap();
}

/// One round of traffic of a pair, in both directions; its regions.
struct Traffic<'a> {
    pair: &'a Pair,
    qps: [&'a Qp; 2],
    source: [Mr; 2],
    sink: [Mr; 2],
    got: [Mr; 2],
    round: std::cell::Cell<u64>,
}

impl<'a> Traffic<'a> {
    fn new(pair: &'a Pair, qps: [&'a Qp; 2]) -> Self {
        let regions =
            |f: fn(usize, usize) -> u8| [0, 1].map(|n| pair.ends[n].region(SIZE, all_access(), |i| f(n, i)).unwrap());
        Self {
            pair,
            qps,
            source: regions(|n, i| (i * 7 + n * 3 + 1) as u8 | 1),
            sink: regions(|_, _| 0),
            got: regions(|_, _| 0),
            round: 0.into(),
        }
    }

    /// A WRITE, a SEND and a READ from each end; they are not waited for.
    fn start(&self) {
        let at = (self.round.get() as usize * 41) % 1000;
        self.round.set(self.round.get() + 1);
        for n in 0..2 {
            let sges = vec![self.got[n].sge(3000, 700)];
            self.qps[n].post_recv(&[RecvWr { wr_id: 8, sges }]).unwrap();
        }
        for n in 0..2 {
            let (own, peer) = (&self.source[n], &self.sink[1 - n]);
            let theirs = &self.source[1 - n];
            let read = SendWr::read(
                3,
                vec![self.got[n].sge(0, 900)],
                theirs.iova().offset(at as u64),
                theirs.rkey(),
            );
            let write = SendWr::write(1, vec![own.sge(at, 1200)], peer.iova().offset(at as u64), peer.rkey());
            self.qps[n]
                .post_send(&[write, SendWr::send(2, vec![own.sge(at + 1, 700)]), read])
                .unwrap();
        }
    }

    /// All of the last round completes, and every byte is where it belongs. Completions of other queue pairs that were waited
    /// for as well, `sends` and `receives` of each end, are returned.
    fn finish(&self, what: &str, sends: [usize; 2], receives: [usize; 2]) -> [Vec<WorkCompletion>; 2] {
        let mut others = [vec![], vec![]];
        let at = ((self.round.get() as usize - 1) * 41) % 1000;
        for n in 0..2 {
            let mine = |wcs: Vec<WorkCompletion>| -> (Vec<_>, Vec<_>) {
                wcs.into_iter().partition(|wc| wc.qpn == self.qps[n].qpn())
            };
            let done = self.pair.ends[n].send_cq.wait(3 + sends[n], BUDGET);
            let (done, rest) = mine(done.unwrap_or_else(|e| panic!("{what}: end {n}: {e}")));
            others[n].extend(rest);
            let got: Vec<_> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            assert_eq!(got, [1, 2, 3].map(|id| (id, WcStatus::Success)), "{what}: end {n}");
            let got = self.pair.ends[n].recv_cq.wait(1 + receives[n], BUDGET);
            let (got, rest) = mine(got.unwrap_or_else(|e| panic!("{what}: end {n}: {e}")));
            others[n].extend(rest);
            assert_eq!(
                (got[0].wr_id, got[0].status, got[0].byte_len),
                (8, WcStatus::Success, 700),
                "{what}: end {n}"
            );
            let (own, peer) = (&self.source[n], &self.source[1 - n]);
            assert!(
                self.sink[1 - n].read(at, 1200).unwrap() == own.read(at, 1200).unwrap(),
                "{what}"
            );
            assert!(
                self.got[1 - n].read(3000, 700).unwrap() == own.read(at + 1, 700).unwrap(),
                "{what}"
            );
            assert!(
                self.got[n].read(0, 900).unwrap() == peer.read(at, 900).unwrap(),
                "{what}"
            );
            assert_eq!(self.qps[n].query().unwrap().state, QpState::Rts, "{what}");
        }
        others
    }
}

/// Everything that was counted but what each frame counts, and what reading the counters takes.
fn counted(pair: &Pair, n: usize, before: &openrnic_driver::Counters) -> Vec<(CounterId, u64)> {
    const ANYHOW: [CounterId; 7] = [
        CounterId::RxBytes,
        CounterId::TxBytes,
        CounterId::TxFrames,
        CounterId::PcieRdBytes,
        CounterId::PcieWrBytes,
        CounterId::CmdOk,
        CounterId::MsixSent,
    ];
    let since = counters(pair, n).since(before);
    since
        .iter()
        .filter(|(id, count)| *count != 0 && !ANYHOW.contains(id))
        .collect()
}

fn each_once(ids: &[CounterId]) -> Vec<(CounterId, u64)> {
    let mut ids: Vec<_> = ids.iter().map(|id| (*id, 1)).collect();
    ids.sort_by_key(|(id, _)| *id as u8);
    ids
}

#[test]
fn a_bad_frame_beside_the_traffic_is_counted_by_its_reason_and_changes_nothing() {
    each_width(|pair| {
        let [a, b] = connect(&pair, 6);
        for (n, end) in pair.ends.iter().enumerate() {
            end.device.set_gid(3, Gid::from_ipv4([10, 9, 9, 9])).unwrap();
            assert_eq!(end.gid, Gid::from_ipv4([10, 0, 0, n as u8 + 1]));
        }
        let source = pair.ends[0].region(64, all_access(), |_| 0x77).unwrap();
        let target = pair.ends[1].region(SIZE, all_access(), |_| 0x5a).unwrap();
        let (request, ack) = templates(&pair, &a, &source, &target);
        target.write(0, &[0x5a; 8]).unwrap();
        let others = [0, 1].map(|n| Others::new(&pair.ends[n]));
        // Requests that would be executed if they got through: with the PSN that is expected next, and the right key.
        let next = with(&request, |r| r.bth.psn = PSN + 1);
        let mut bad = malformed(&next, 1);
        bad.extend(malformed(&ack, 0));
        bad.extend(misdirected(&next, 1, CounterId::RxRequests, &others[1]));
        bad.extend(misdirected(&ack, 0, CounterId::RxResponses, &others[0]));
        let quiet = bad.len();
        bad.extend(untimely(&request, &ack));
        // One by one, on a connection that is at rest.
        let traffic = Traffic::new(&pair, [&a, &b]);
        for case in &bad {
            let before = [counters(&pair, 0), counters(&pair, 1)];
            inject(&pair, case);
            pair.run(900 + case.frame.len() as u64).unwrap();
            let mut want = each_once(&case.counts);
            want.insert(0, (CounterId::RxFrames, 1));
            assert_eq!(counted(&pair, case.to, &before[case.to]), want, "{}", case.what);
            let other = 1 - case.to;
            let mut want = each_once(&case.other);
            if !want.is_empty() {
                want.insert(0, (CounterId::RxFrames, 1));
            }
            assert_eq!(counted(&pair, other, &before[other]), want, "{}", case.what);
        }
        // The same while each end WRITEs, SENDs and READs: nothing is dropped but they, nothing comes twice, all is where it belongs.
        // The frames that cause no answer first: of the others the answers may come when something waits for their PSN.
        for (which, frames) in [("refused", &bad[..quiet]), ("untimely", &bad[quiet..])] {
            let before = [counters(&pair, 0), counters(&pair, 1)];
            let (mut n, mut rounds) = (0, 0);
            while n < frames.len() {
                traffic.start();
                rounds += 1;
                for case in frames.iter().skip(n).take(8) {
                    pair.run(90 + 37 * (n as u64 % 5)).unwrap();
                    inject(&pair, case);
                    n += 1;
                }
                traffic.finish(which, [0; 2], [0; 2]);
            }
            pair.run(3000).unwrap();
            println!("{which}: {n} frames, {rounds} rounds");
            for (end, before) in before.iter().enumerate() {
                let since = counters(&pair, end).since(before);
                let mine = |id: CounterId| {
                    let at = |case: &&Bad| case.to == end && case.counts.contains(&id);
                    frames.iter().filter(at).count() as u64
                };
                for id in DROPS.into_iter().chain([
                    CounterId::RxDropQpState,
                    CounterId::RxDuplicates,
                    CounterId::RxOutOfSequence,
                    CounterId::TxNakInvReq,
                    CounterId::TxNakPsnSeq,
                    CounterId::TxRnrNaks,
                    CounterId::Retransmissions,
                    CounterId::Timeouts,
                ]) {
                    assert_eq!(since.get(id), mine(id), "{which}, end {end}: {id:?}");
                }
                let ghosts = frames
                    .iter()
                    .filter(|c| c.to != end && c.other.contains(&CounterId::RxGhostResponses));
                let most = mine(CounterId::RxGhostResponses) + ghosts.count() as u64;
                let ghosts = since.get(CounterId::RxGhostResponses);
                assert!(
                    (mine(CounterId::RxGhostResponses)..=most).contains(&ghosts),
                    "{which}, end {end}: {ghosts} ghosts, at most {most}"
                );
            }
        }
        assert!(target.read(0, SIZE).unwrap() == vec![0x5a; SIZE]);
        for end in &pair.ends {
            end.events()
                .unwrap()
                .iter()
                .for_each(|e| assert_eq!(e.0, EventType::CommEst));
            assert_eq!(end.recv_cq.poll(1).unwrap(), []);
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

#[test]
fn a_request_from_the_future_is_named_once_and_the_traffic_goes_on() {
    each_width(|pair| {
        let [a, b] = connect(&pair, 6);
        let source = pair.ends[0].region(64, all_access(), |_| 0x77).unwrap();
        let target = pair.ends[1].region(SIZE, all_access(), |_| 0x5a).unwrap();
        let (request, _) = templates(&pair, &a, &source, &target);
        target.write(0, &[0x5a; 8]).unwrap();
        let future = Bad {
            what: "PSN ahead",
            to: 1,
            frame: with(&request, |r| r.bth.psn = (PSN + 0x40_0000) & 0xff_ffff).emit(),
            mac_error: false,
            counts: Vec::new(),
            other: Vec::new(),
        };
        // At rest: one NAK, which nothing waits for.
        let before = [counters(&pair, 0), counters(&pair, 1)];
        for _ in 0..3 {
            inject(&pair, &future);
            pair.run(1500).unwrap();
        }
        let since = [0, 1].map(|n| counters(&pair, n).since(&before[n]));
        assert_eq!(since[1].get(CounterId::RxOutOfSequence), 3);
        assert_eq!(since[1].get(CounterId::TxNakPsnSeq), 1);
        assert_eq!(since[0].get(CounterId::RxNakPsnSeq), 1);
        assert_eq!(since[0].get(CounterId::RxGhostResponses), 1);
        // Beside traffic: what the NAK asks for is sent again, and executed once.
        let traffic = Traffic::new(&pair, [&a, &b]);
        for round in 0..6 {
            traffic.start();
            for _ in 0..3 {
                pair.run(200 + 61 * round).unwrap();
                inject(&pair, &future);
            }
            traffic.finish("PSN ahead", [0; 2], [0; 2]);
        }
        pair.run(3000).unwrap();
        let since = [0, 1].map(|n| counters(&pair, n).since(&before[n]));
        assert_eq!(since[1].get(CounterId::RxOutOfSequence), 3 + 18);
        let naks = since[1].get(CounterId::TxNakPsnSeq);
        assert!((2..=1 + 18).contains(&naks), "{naks} NAKs");
        assert_eq!(since[0].get(CounterId::RxNakPsnSeq), naks);
        assert!(since[0].get(CounterId::Retransmissions) > 0);
        assert!(target.read(0, SIZE).unwrap() == vec![0x5a; SIZE]);
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

// ---------------------------------------------------------------------------------------------- frames changed on their way

/// Plays the changes of the frames of one end, each on a connection of its own beside a sound one.
fn changed(from: usize, changes: impl Fn() -> Vec<Change>) {
    each_width(|pair| {
        let sound = connect(&pair, 6);
        let beside = Traffic::new(&pair, [&sound[0], &sound[1]]);
        for change in changes() {
            one(&pair, &beside, from, &change);
        }
        assert!(pair.world.borrow_mut().take_violations().is_empty());
    });
}

fn one(pair: &Pair, beside: &Traffic<'_>, from: usize, change: &Change) {
    let Change {
        what,
        ask,
        packet,
        edit,
        end,
    } = *change;
    let what = format!("{what}, {ask:?}, packet {packet} of end {from}");
    // 33 us; an RNR NAK asks for 10 us.
    let qps = connect(pair, 3);
    let [a, b] = &qps;
    let local = pair.ends[0]
        .region(SIZE, all_access(), |i| (i * 5 + 1) as u8 | 1)
        .unwrap();
    let remote = pair.ends[1].region(SIZE, all_access(), |_| 0).unwrap();
    let far = pair.ends[1]
        .region(SIZE, all_access(), |i| (i * 3 + 1) as u8 | 1)
        .unwrap();
    let got = pair.ends[0].region(SIZE, all_access(), |_| 0).unwrap();
    for wr_id in [10, 11] {
        let sges = vec![remote.sge(0, 1024)];
        b.post_recv(&[RecvWr { wr_id, sges }]).unwrap();
    }
    for end in &pair.ends {
        end.events().unwrap();
    }
    let (peer, psn) = ([b, a][from].qpn().0, (PSN + packet) & 0xff_ffff);
    let rule = Rule::once(
        from,
        Action::Edit(Box::new(move |f| {
            let mut roce = Roce::parse(f).unwrap();
            edit(&mut roce);
            *f = roce.emit();
        })),
        move |f| frame::bth(f).is_some_and(|bth| bth.dest_qp() == peer && bth.psn() == psn),
    );
    let rule = pair.world.borrow_mut().wire().add_rule(rule);
    let before = [counters(pair, 0), counters(pair, 1)];
    let (len, wr) = match ask {
        Ask::Write(n) => (n, SendWr::write(1, vec![local.sge(0, n)], remote.iova(), remote.rkey())),
        Ask::Send(n) => (n, SendWr::send(1, vec![local.sge(0, n)])),
        Ask::Read(n) => (n, SendWr::read(1, vec![got.sge(0, n)], far.iova(), far.rkey())),
    };
    beside.start();
    a.post_send(&[wr]).unwrap();
    let len = len as usize;
    let heard = match end {
        Outcome::Refused(..) => 2,
        Outcome::Lost(_) if matches!(ask, Ask::Send(_)) => 1,
        _ => 0,
    };
    let [done, wcs] = beside.finish(&what, [1, 0], [0, heard]);
    assert_eq!(done[0].wr_id, 1, "{what}");
    pair.run(800).unwrap();
    assert_eq!(pair.world.borrow_mut().wire().rule_hits(rule), 1, "{what}");
    let since = [0, 1].map(|n| counters(pair, n).since(&before[n]));
    let events = |n: usize| {
        let mut events = pair.ends[n].events().unwrap();
        events.retain(|e| e.0 != EventType::CommEst);
        events
    };
    let states = [a, b].map(|qp| qp.query().unwrap().state);
    // What was placed, and what must not have been: of the packet at fault and behind it.
    let written = remote.read(0, SIZE).unwrap();
    let read = got.read(0, SIZE).unwrap();
    let untouched = |bytes: &[u8], from: usize| bytes[from..].iter().all(|b| *b == 0);
    let mut drops: Vec<(usize, CounterId)> = Vec::new();
    match end {
        Outcome::Lost(id) => {
            assert_eq!(done[0].status, WcStatus::Success, "{what}");
            assert_eq!(states, [QpState::Rts; 2], "{what}");
            assert_eq!((events(0), events(1)), (vec![], vec![]), "{what}");
            assert_eq!(since[1 - from].get(id), 1, "{what}: {id:?}");
            assert!(since[0].get(CounterId::Retransmissions) > 0, "{what}");
            drops.push((1 - from, id));
            let (bytes, want) = match ask {
                Ask::Read(_) => (&read, far.read(0, len).unwrap()),
                _ => (&written, local.read(0, len).unwrap()),
            };
            assert!(bytes[..len] == want[..] && untouched(bytes, len), "{what}");
            if let Ask::Send(n) = ask {
                assert_eq!(
                    (wcs[0].wr_id, wcs[0].status, wcs[0].byte_len, wcs[0].opcode),
                    (10, WcStatus::Success, n, WcOpcode::Recv),
                    "{what}"
                );
            }
            // The connection serves as before.
            a.post_send(&[SendWr::write(
                5,
                vec![local.sge(9, 600)],
                remote.iova().offset(4096),
                remote.rkey(),
            )])
            .unwrap();
            let done = pair.ends[0].send_cq.wait(1, BUDGET).unwrap();
            assert_eq!((done[0].wr_id, done[0].status), (5, WcStatus::Success), "{what}");
            assert!(remote.read(4096, 600).unwrap() == local.read(9, 600).unwrap(), "{what}");
        }
        Outcome::Refused(status, nak, hears) => {
            assert_eq!(done[0].status, status, "{what}");
            assert_eq!(states, [QpState::Err; 2], "{what}");
            for id in [
                CounterId::TxNakInvReq,
                CounterId::TxNakRemAccess,
                CounterId::TxNakRemOp,
                CounterId::TxNakPsnSeq,
                CounterId::TxRnrNaks,
            ] {
                assert_eq!(since[1].get(id), u64::from(id == nak), "{what}: {id:?}");
            }
            let first = match hears {
                Hears::Event(event) => {
                    assert_eq!(events(1), [(event, b.qpn().0)], "{what}");
                    WcStatus::WrFlushErr
                }
                Hears::Receive(status) => {
                    assert_eq!(events(1), [], "{what}");
                    status
                }
            };
            assert_eq!(events(0), [], "{what}");
            let wcs: Vec<_> = wcs.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            assert_eq!(wcs, [(10, first), (11, WcStatus::WrFlushErr)], "{what}");
            // Of a SEND whose key cannot be invalidated the payload is placed.
            let placed = if hears == Hears::Receive(WcStatus::LocAccessErr) {
                len
            } else {
                packet as usize * MTU
            };
            assert!(untouched(&written, placed) && untouched(&read, 0), "{what}");
        }
        Outcome::GivenUp(status) => {
            assert_eq!(done[0].status, status, "{what}");
            assert_eq!(states, [QpState::Err, QpState::Rts], "{what}");
            assert_eq!((events(0), events(1)), (vec![], vec![]), "{what}");
            assert!(untouched(&read, packet as usize * MTU), "{what}");
        }
    }
    for (n, since) in since.iter().enumerate() {
        for id in DROPS {
            let want = u64::from(drops.contains(&(n, id)));
            assert_eq!(since.get(id), want, "{what}: end {n}: {id:?}");
        }
    }
    for qp in qps {
        qp.destroy().unwrap();
    }
    for region in [local, remote, far, got] {
        region.deregister().unwrap();
    }
}

#[test]
fn a_request_that_is_changed_on_its_way_ends_or_comes_again() {
    changed(0, requests);
}

#[test]
fn a_response_that_is_changed_on_its_way_ends_its_request_or_comes_again() {
    changed(1, responses);
}
