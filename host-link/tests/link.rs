// SPDX-License-Identifier: Apache-2.0
//! The RTL of the host link against the host's end: what one side sends arrives at the other once, whole and in order, whatever the line does.
#![allow(clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use common::{Board, Cable, DIV};
use openrnic_link::endpoint::{Endpoint, LinkError, LinkParams};
use openrnic_link::line::Line;
use openrnic_sim::model::BlockModel;
use openrnic_sim::rng::Stream;
use openrnic_spec::LinkKind;

const TICK: u64 = 20;
/// A TLP: header and beats.
type Tlp = ([u8; 16], Vec<[u8; 8]>);

/// The core's side: sources and sinks of TLPs that come and go as chance says.
#[derive(Default)]
struct Core {
    /// To be offered on CC and RQ, in order; beat that is offered.
    out: [VecDeque<Tlp>; 2],
    at: [usize; 2],
    /// What came on CQ and RC.
    came: [Vec<Tlp>; 2],
    part: [Vec<[u8; 8]>; 2],
    /// Share of cycles in which a sink is ready and a source offers.
    ready: f64,
}

struct Bench {
    cable: Cable,
    core: Rc<RefCell<Core>>,
    host: Endpoint,
    now: u64,
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

fn bytes<const N: usize>(words: &[u32]) -> [u8; N] {
    words
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

const SOURCES: [[&str; 5]; 2] = [
    ["cc_valid_i", "cc_ready_o", "cc_hdr_i", "cc_data_i", "cc_last_i"],
    ["rq_valid_i", "rq_ready_o", "rq_hdr_i", "rq_data_i", "rq_last_i"],
];
const SINKS: [[&str; 5]; 2] = [
    ["cq_valid_o", "cq_ready_i", "cq_hdr_o", "cq_data_o", "cq_last_o"],
    ["rc_valid_o", "rc_ready_i", "rc_hdr_o", "rc_data_o", "rc_last_o"],
];

impl Core {
    /// What the sides did in the cycle that ended, and what they do in the next: the bench's part of a clock cycle.
    fn cycle(&mut self, dut: &mut BlockModel, rng: &mut Stream) {
        for s in 0..2 {
            let [valid, ready, hdr, data, last] = SOURCES[s];
            if dut.get(valid) == 1 && dut.sampled(ready) == 1 {
                self.at[s] += 1;
                if self.at[s] == self.out[s][0].1.len() {
                    self.out[s].pop_front();
                    self.at[s] = 0;
                }
                dut.set(valid, 0);
            }
            if dut.get(valid) == 0 && !self.out[s].is_empty() && rng.chance(self.ready) {
                let (header, beats) = &self.out[s][0];
                dut.set_wide(hdr, &words(header));
                dut.set(data, u64::from_le_bytes(beats[self.at[s]]));
                dut.set(last, u64::from(self.at[s] + 1 == beats.len()));
                dut.set(valid, 1);
            }
            let [valid, ready, hdr, data, last] = SINKS[s];
            if dut.sampled(valid) == 1 && dut.get(ready) == 1 {
                self.part[s].push(dut.sampled(data).to_le_bytes());
                if dut.sampled(last) == 1 {
                    let tlp = (bytes(&dut.sampled_wide(hdr)), std::mem::take(&mut self.part[s]));
                    self.came[s].push(tlp);
                }
            }
            dut.set(ready, u64::from(rng.chance(self.ready)));
        }
    }
}

impl Bench {
    fn new(seed: u64, ready: f64) -> Self {
        Self::at_rate(seed, ready, DIV, DIV)
    }

    /// `board` and `line`: clock cycles a bit as either side has them.
    fn at_rate(seed: u64, ready: f64, board: u64, line: u64) -> Self {
        let dut = BlockModel::builder("rnic_host_link")
            .param("Div", board)
            .param("RetryCycles", 10_000 * board)
            .random_init(seed)
            .build()
            .unwrap();
        let core = Rc::new(RefCell::new(Core {
            ready,
            ..Core::default()
        }));
        let mut board = Board::new(dut, line, TICK, seed);
        let mut rng = Stream::new(seed, "link.core", 0);
        let side = Rc::clone(&core);
        board.pins = Box::new(move |dut| side.borrow_mut().cycle(dut, &mut rng));
        let params = LinkParams {
            retry_ticks: 500 * line,
            tries: 25,
            tick_ps: TICK * 8000,
        };
        let mut bench = Self {
            cable: Cable::new(board),
            core,
            host: Endpoint::new(params),
            now: 0,
        };
        bench.host.begin(0, 7);
        bench
    }

    fn tick(&mut self) -> Result<(), LinkError> {
        self.now += 1;
        self.cable.tick().unwrap();
        for byte in self.cable.receive() {
            self.host.take(self.now, byte)?;
        }
        if self.cable.ready()
            && let Some(frame) = self.host.poll(self.now)?
        {
            self.cable.send(&frame).unwrap();
        }
        Ok(())
    }

    fn until(&mut self, what: &str, ticks: u64, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..ticks {
            if done(self) {
                return;
            }
            self.tick().unwrap();
        }
        panic!("{what}: not within {ticks} ticks");
    }

    /// The core runs.
    fn run(&mut self) {
        self.until("a session", 50_000, |b| b.host.is_up());
        self.host.control(true, true);
        self.until("the core to run", 50_000, |b| b.pin("core_rst_o") == 0);
        assert_eq!(self.pin("bus_master_en_o"), 1);
    }

    fn pin(&self, name: &str) -> u64 {
        self.cable.0.borrow().dut.get(name)
    }
}

fn tlp(rng: &mut Stream) -> Tlp {
    // Flags and escapes more often than chance has them.
    let mut byte = || [0x7e, 0x7d, rng.below(256) as u8, rng.below(256) as u8][rng.below(4) as usize];
    let header = std::array::from_fn(|_| byte());
    let beats = [1, 2, 8, 31, 32][rng.below(5) as usize];
    let mut rng = Stream::new(
        u64::from(header[0]) << 8 | u64::from(header[3]),
        "link.beats",
        u64::from(header[5]),
    );
    (
        header,
        (0..beats)
            .map(|_| std::array::from_fn(|_| rng.below(256) as u8))
            .collect(),
    )
}

fn payload(t: &Tlp) -> Vec<u8> {
    t.0.iter().chain(t.1.iter().flatten()).copied().collect()
}

/// Sends `count` TLPs on each of the four streams and compares what arrived.
fn conversation(seed: u64, count: usize, flip: f64, ready: f64) -> Bench {
    let mut b = Bench::new(seed, ready);
    b.run();
    b.cable.faults(|f| f.flip = flip);
    let mut rng = Stream::new(seed, "link.test", 0);
    let mut made = || -> Vec<Tlp> { (0..count).map(|_| tlp(&mut rng)).collect() };
    let (up, down) = ([made(), made()], [made(), made()]);
    b.core.borrow_mut().out = up.clone().map(VecDeque::from);
    for (cq, rc) in down[0].iter().zip(&down[1]) {
        b.host.send(LinkKind::Cq, payload(cq));
        b.host.send(LinkKind::Rc, payload(rc));
    }
    let mut came: [Vec<Vec<u8>>; 2] = Default::default();
    b.until("everything", 4_000_000, |b| {
        while let Some((kind, payload)) = b.host.receive() {
            came[usize::from(kind == LinkKind::Rq)].push(payload);
        }
        let core = b.core.borrow();
        (0..2).all(|s| came[s].len() >= count && core.came[s].len() >= count) && b.host.waiting() == 0
    });
    // What comes once more would come now.
    for _ in 0..10_000 {
        b.tick().unwrap();
    }
    assert!(b.host.receive().is_none(), "seed {seed}: nothing arrives twice");
    for s in 0..2 {
        assert_eq!(
            came[s],
            up[s].iter().map(payload).collect::<Vec<_>>(),
            "seed {seed}: to the host, stream {s}"
        );
        assert_eq!(
            b.core.borrow().came[s],
            down[s],
            "seed {seed}: to the board, stream {s}"
        );
    }
    b
}

#[test]
fn every_tlp_arrives_once_in_order_and_nothing_is_sent_twice_on_a_good_line() {
    let b = conversation(1, 60, 0.0, 1.0);
    assert_eq!(b.host.stats().again, 0);
    assert_eq!((b.host.stats().out_of_order, b.host.bad()), (0, 0));
}

#[test]
fn a_rate_that_is_three_percent_off_and_a_short_disturbance_are_no_matter() {
    for line in [31, 33] {
        let mut b = Bench::at_rate(9, 1.0, 32, line);
        b.run();
        // Shorter than half a bit: no start bit. (The line rests meanwhile.)
        for _ in 0..2000 {
            b.tick().unwrap();
        }
        let board = Rc::clone(&b.cable.0);
        for _ in 0..5 {
            let mut board = board.borrow_mut();
            board.dut.set("rx_i", 0);
            board.dut.clocks(10);
            board.dut.set("rx_i", 1);
            board.dut.clocks(60);
        }
        let mut rng = Stream::new(9, "link.test", 0);
        let sent: Vec<Tlp> = (0..5).map(|_| tlp(&mut rng)).collect();
        b.core.borrow_mut().out[0] = sent.clone().into();
        for t in &sent {
            b.host.send(LinkKind::Cq, payload(t));
        }
        let mut came = Vec::new();
        b.until("everything", 400_000, |b| {
            came.extend(std::iter::from_fn(|| b.host.receive()));
            came.len() == 5 && b.core.borrow().came[0].len() == 5
        });
        assert_eq!(b.core.borrow().came[0], sent);
        assert!(came.iter().zip(&sent).all(|(c, s)| c.1 == payload(s)));
        assert_eq!(
            (b.host.bad(), b.host.stats().out_of_order, b.pin("bad_frame_o")),
            (0, 0, 0)
        );
    }
}

#[test]
fn every_tlp_arrives_once_in_order_on_a_line_that_changes_bytes() {
    for seed in [2, 3] {
        let b = conversation(seed, 60, 0.002, 0.5);
        let stats = b.host.stats();
        assert!(
            stats.again > 0 && stats.out_of_order > 0 && b.host.bad() > 0,
            "seed {seed}: the line did harm: {stats:?}"
        );
        assert!(b.cable.passed().flipped > 10);
    }
}

#[test]
fn a_core_that_takes_its_time_holds_the_host_back_and_loses_nothing() {
    let b = conversation(4, 30, 0.0, 0.002);
    assert!(b.host.stats().sent > 60);
}

#[test]
fn a_core_that_takes_nothing_is_asked_for_room_until_it_does() {
    let mut b = Bench::new(5, 0.0);
    b.run();
    let mut rng = Stream::new(5, "link.test", 0);
    let sent: Vec<Tlp> = (0..9).map(|_| tlp(&mut rng)).collect();
    for t in &sent {
        b.host.send(LinkKind::Rc, payload(t));
    }
    for _ in 0..20_000 {
        b.tick().unwrap();
    }
    assert_eq!(b.host.waiting(), 5, "four slots are full");
    b.core.borrow_mut().ready = 1.0;
    b.until("the rest", 100_000, |b| b.core.borrow().came[1].len() == 9);
    assert_eq!(b.core.borrow().came[1], sent);
}

#[test]
fn a_cable_pulled_for_a_while_costs_time_alone() {
    let mut b = Bench::new(6, 1.0);
    b.run();
    let mut rng = Stream::new(6, "link.test", 0);
    let sent: Vec<Tlp> = (0..20).map(|_| tlp(&mut rng)).collect();
    b.core.borrow_mut().out[1] = sent.clone().into();
    b.until("some", 100_000, |b| b.host.stats().received > 5);
    b.cable.faults(|f| f.pulled = true);
    for _ in 0..10_000 {
        b.tick().unwrap();
    }
    b.cable.faults(|f| f.pulled = false);
    let mut came = Vec::new();
    b.until("the rest", 200_000, |b| {
        came.extend(std::iter::from_fn(|| b.host.receive()));
        came.len() == 20
    });
    assert!(came.iter().zip(&sent).all(|(c, s)| c.1 == payload(s)));
}

#[test]
fn a_cable_that_stays_away_is_told_and_a_new_session_begins_from_nothing() {
    let mut b = Bench::new(7, 1.0);
    b.run();
    let mut rng = Stream::new(7, "link.test", 0);
    b.core.borrow_mut().out[1] = (0..8).map(|_| tlp(&mut rng)).collect();
    b.until("some", 100_000, |b| b.host.stats().received > 3);
    b.cable.faults(|f| f.pulled = true);
    b.host.send(LinkKind::Cq, payload(&tlp(&mut rng)));
    let error = (0..100_000).find_map(|_| b.tick().err()).expect("it is told in time");
    assert!(matches!(error, LinkError::Lost { tries: 25, .. }), "{error}");
    assert!(error.to_string().contains("cable"), "{error}");
    // Nobody there at all: the same, of the greeting.
    b.host.begin(b.now, 8);
    let error = (0..100_000).find_map(|_| b.tick().err()).expect("it is told in time");
    assert!(matches!(error, LinkError::NoAnswer { tries: 25, .. }), "{error}");
    b.cable.faults(|f| f.pulled = false);
    b.host.begin(b.now, 9);
    b.until("a session", 50_000, |b| b.host.is_up());
    assert_eq!(b.pin("core_rst_o"), 1, "the core waits in reset");
    while b.host.receive().is_some() {}
    // A core in reset offers nothing; what it had offered is gone with it.
    let mut core = b.core.borrow_mut();
    core.out[1].clear();
    core.at[1] = 0;
    drop(core);
    b.cable.0.borrow_mut().dut.set("rq_valid_i", 0);
    b.run();
    let t = tlp(&mut rng);
    b.core.borrow_mut().out[1].push_back(t.clone());
    b.until("a TLP", 50_000, |b| {
        b.host.stats().received > 0 && b.core.borrow().out[1].is_empty()
    });
    let mut got = None;
    b.until("it", 50_000, |b| {
        got = got.take().or_else(|| b.host.receive());
        got.is_some()
    });
    assert_eq!(
        got.unwrap(),
        (LinkKind::Rq, payload(&t)),
        "nothing of the session before comes first"
    );
}

#[test]
fn what_is_no_frame_of_this_session_changes_nothing() {
    use openrnic_link::frame::Frame;
    use openrnic_spec::{LinkControl, LinkHead};
    let mut b = Bench::new(8, 1.0);
    b.run();
    let frame = |session: u8, kind: u8, seq: u8, payload: Vec<u8>| Frame {
        head: LinkHead::new()
            .with_kind(kind)
            .with_session(session)
            .with_seq(seq)
            .with_ack(0)
            .with_window(8),
        payload,
    };
    let off = LinkControl::new().0.to_vec();
    let tlp = vec![0x55; 24];
    let mut flagged = frame(7, 4, 1, tlp.clone());
    flagged.head.0[7] = 1; // a reserved byte
    let wrong = [
        frame(8, 3, 1, off.clone()),  // of another session
        frame(7, 3, 2, off.clone()),  // not the one awaited
        frame(7, 3, 1, vec![0; 16]),  // a CONTROL of the wrong size
        frame(7, 4, 1, vec![0; 16]),  // a TLP without a beat
        frame(7, 4, 1, vec![0; 28]),  // half a beat
        frame(7, 5, 1, vec![0; 280]), // too long
        frame(7, 6, 1, tlp.clone()),  // what only the board sends
        frame(7, 1, 0, vec![0; 8]),   // a HELLO with payload
        flagged,
    ];
    for f in wrong {
        while !b.cable.ready() {
            b.tick().unwrap();
        }
        b.cable.send(&f.encode()).unwrap();
        for _ in 0..2000 {
            b.tick().unwrap();
        }
        assert_eq!(
            (
                b.pin("core_rst_o"),
                b.core.borrow().came.iter().map(Vec::len).sum::<usize>()
            ),
            (0, 0),
            "{f:?}"
        );
    }
    // The session goes on.
    b.host.send(LinkKind::Cq, tlp);
    b.until("it", 50_000, |b| b.core.borrow().came[0].len() == 1);
}
