// SPDX-License-Identifier: Apache-2.0
//! A NIC of a few lines of Rust in place of the RTL: does what a test tells it, notes what it gets.
#![allow(dead_code, clippy::unwrap_used)] // each test file uses its part

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use openrnic_driver::bus::Bus;
use openrnic_sim::device::{BadKeep, Device, MacBeat, TlpBeat, TlpIn, TlpOut};
use openrnic_sim::model::ModelError;
use openrnic_sim::pcie::regs;
use openrnic_sim::{NicBus, SharedWorld, World, WorldParams};
use openrnic_spec::{CcHdr, CplStatus, CqHdr, RcHdr, RqHdr};

/// A beat as the device sees or makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    pub header: [u8; 16],
    pub data: Vec<u8>,
    pub last: bool,
}

#[derive(Debug, Default)]
struct InStream {
    beat: Option<Beat>,
    ready: bool,
    data: Vec<u8>,
}

#[derive(Debug, Default)]
struct OutStream {
    beats: VecDeque<Beat>,
    ready: bool,
    sampled: Option<Beat>,
}

/// The scripted NIC: what it shall do and what it saw. Public fields are for the test.
pub struct Script {
    pub width: usize,
    pub cycle: u64,
    pub reset: bool,
    pub resets: u64,
    pub bus_master: bool,
    pub port_up: bool,
    /// BAR0 as memory.
    pub bar: Vec<u8>,
    /// Answers host reads.
    pub answer: bool,
    /// Answers host reads with this status.
    pub status: CplStatus,
    /// Answers each double word by a completion of its own.
    pub split_answers: bool,
    /// Takes a beat of the host in one of so many cycles.
    pub ready_every: u64,
    /// Host requests: cycle of the last beat, header, payload.
    pub requests: Vec<(u64, CqHdr, Vec<u8>)>,
    /// Completions: cycle of the first and of the last beat, header, payload.
    pub completions: Vec<(u64, u64, RcHdr, Vec<u8>)>,
    /// Frames received: cycle of the last beat, frame, flagged by the MAC.
    pub frames: Vec<(u64, Vec<u8>, bool)>,
    /// Frame beats to send; a cycle without a beat where `None` stands.
    pub tx: VecDeque<Option<(Vec<u8>, bool)>>,
    /// Lane masks with a hole.
    pub bad_keep: bool,
    tx_ready: bool,
    tx_sampled: Option<(Vec<u8>, bool)>,
    rx: Option<(Vec<u8>, bool, bool)>,
    rx_data: Vec<u8>,
    rc_first: u64,
    cq: InStream,
    rc: InStream,
    cc: OutStream,
    rq: OutStream,
}

pub type Handle = Rc<RefCell<Script>>;

pub struct ScriptedNic(pub Handle);

impl Script {
    pub fn new(width: usize) -> Handle {
        Rc::new(RefCell::new(Self {
            width,
            cycle: 0,
            reset: false,
            resets: 0,
            bus_master: false,
            port_up: false,
            bar: vec![0; 0x40000],
            answer: true,
            status: CplStatus::Sc,
            split_answers: false,
            ready_every: 1,
            requests: Vec::new(),
            completions: Vec::new(),
            frames: Vec::new(),
            tx: VecDeque::new(),
            bad_keep: false,
            tx_ready: false,
            tx_sampled: None,
            rx: None,
            rx_data: Vec::new(),
            rc_first: 0,
            cq: InStream::default(),
            rc: InStream::default(),
            cc: OutStream::default(),
            rq: OutStream::default(),
        }))
    }

    fn beats(&self, header: [u8; 16], data: &[u8]) -> Vec<Beat> {
        let count = data.len().div_ceil(self.width).max(1);
        (0..count)
            .map(|i| {
                let mut lanes = data[(i * self.width).min(data.len())..((i + 1) * self.width).min(data.len())].to_vec();
                lanes.resize(self.width, 0x77);
                Beat {
                    header,
                    data: lanes,
                    last: i + 1 == count,
                }
            })
            .collect()
    }

    /// Sends any packet on the requester stream.
    pub fn request(&mut self, header: RqHdr, data: &[u8]) {
        let beats = self.beats(header.0, data);
        self.rq.beats.extend(beats);
    }

    /// Sends any beats on the requester stream.
    pub fn raw_beats(&mut self, beats: impl IntoIterator<Item = Beat>) {
        self.rq.beats.extend(beats);
    }

    /// Reads `[addr, addr + len)` of the host's memory.
    pub fn read(&mut self, tag: u16, addr: u64, len: u64) {
        let (header, _) = request(addr, len);
        self.request(header.with_tag(tag), &[]);
    }

    /// Writes host memory.
    pub fn write(&mut self, addr: u64, data: &[u8]) {
        let (header, lead) = request(addr, data.len() as u64);
        let mut payload = vec![0xee; usize::from(header.dw_len()) * 4];
        payload[lead..lead + data.len()].copy_from_slice(data);
        self.request(header.with_wr(true), &payload);
    }

    /// Sends any packet on the completion stream.
    pub fn complete(&mut self, header: CcHdr, data: &[u8]) {
        let beats = self.beats(header.0, data);
        self.cc.beats.extend(beats);
    }

    /// Sends a frame.
    pub fn send(&mut self, frame: &[u8]) {
        let width = self.width;
        let count = frame.len().div_ceil(width);
        self.tx.extend(
            frame
                .chunks(width)
                .enumerate()
                .map(|(i, c)| Some((c.to_vec(), i + 1 == count))),
        );
    }

    /// The bytes that came for a tag, with the checks that every completer's answer passes.
    pub fn answer_of(&self, tag: u16, addr: u64, len: u64, max_payload: u64) -> Vec<u8> {
        let (mut at, mut left) = (addr, len);
        let mut bytes = Vec::new();
        for (_, _, header, data) in self.completions.iter().filter(|(_, _, h, _)| h.tag() == tag) {
            assert_eq!(header.status(), 0);
            assert_eq!(u64::from(header.lower_addr()), at & 0x7f);
            assert_eq!(u64::from(header.byte_count()), left);
            assert_eq!(data.len(), usize::from(header.dw_len()) * 4);
            assert!(data.len() as u64 <= max_payload);
            let lead = at & 3;
            let taken = (data.len() as u64 - lead).min(left);
            bytes.extend_from_slice(&data[lead as usize..(lead + taken) as usize]);
            at += taken;
            left -= taken;
            assert!(left == 0 || at.is_multiple_of(64), "a completion ended at {at:#x}");
        }
        assert_eq!(left, 0, "tag {tag}: {left} bytes did not come");
        bytes
    }

    fn host_request(&mut self, header: CqHdr, data: Vec<u8>) {
        let at = header.addr() as usize;
        if header.wr() {
            let enables: Vec<bool> = enables(&header);
            for (i, on) in enables.iter().enumerate().take(data.len()) {
                if *on {
                    self.bar[at + i] = data[i];
                }
            }
        } else if self.answer {
            self.answer_read(&header);
        }
        self.requests.push((self.cycle, header, data));
    }

    fn answer_read(&mut self, header: &CqHdr) {
        let at = header.addr() as usize;
        let enables = enables(header);
        let first = enables.iter().position(|e| *e).unwrap_or(0);
        let last = enables.iter().rposition(|e| *e).unwrap_or(0);
        let bytes = last + 1 - first;
        let answer = CcHdr::new()
            .with_tag(header.tag())
            .with_requester_id(header.requester_id())
            .with_lower_addr(((at + first) & 0x7f) as u8)
            .with_status(self.status as u8)
            .with_byte_count(bytes as u16);
        if self.status != CplStatus::Sc {
            return self.complete(answer, &[]);
        }
        let all = self.bar[at..at + enables.len()].to_vec();
        if !self.split_answers {
            return self.complete(answer.with_dw_len(header.dw_len()), &all);
        }
        let mut left = bytes;
        for (i, dw) in all.chunks(4).enumerate() {
            let start = if i == 0 { first } else { i * 4 };
            let part = answer
                .with_lower_addr(((at + start) & 0x7f) as u8)
                .with_byte_count(left as u16)
                .with_dw_len(1);
            self.complete(part, dw);
            left -= (i * 4 + 4 - start).min(left);
        }
    }
}

fn enables(header: &CqHdr) -> Vec<bool> {
    let dws = usize::from(header.dw_len());
    (0..dws * 4)
        .map(|i| {
            let mask = match i / 4 {
                0 => header.first_be(),
                dw if dw + 1 == dws => header.last_be(),
                _ => 0xf,
            };
            mask >> (i % 4) & 1 != 0
        })
        .collect()
}

/// Request header for a byte range, and the offset of its first byte in the first double word.
pub fn request(addr: u64, len: u64) -> (RqHdr, usize) {
    let start = addr & !3;
    let dws = (addr + len).div_ceil(4) - start / 4;
    let mut first = 0xf << (addr & 3) & 0xf;
    let tail = 0xf >> ((4 - (addr + len) % 4) % 4);
    let last = if dws == 1 { 0 } else { tail };
    if dws == 1 {
        first &= tail;
    }
    let header = RqHdr::new()
        .with_addr(start)
        .with_dw_len(dws as u16)
        .with_first_be(first)
        .with_last_be(last);
    (header, (addr - start) as usize)
}

impl Device for ScriptedNic {
    fn data_bytes(&self) -> usize {
        self.0.borrow().width
    }

    fn set_reset(&mut self, on: bool) {
        let mut s = self.0.borrow_mut();
        if on && !s.reset {
            s.resets += 1;
            s.rq.beats.clear();
            s.cc.beats.clear();
            s.cq.data.clear();
            s.rc.data.clear();
            s.tx.clear();
        }
        s.reset = on;
    }

    fn set_bus_master(&mut self, on: bool) {
        self.0.borrow_mut().bus_master = on;
    }

    fn set_port_up(&mut self, up: bool) {
        self.0.borrow_mut().port_up = up;
    }

    fn set_tlp(&mut self, stream: TlpIn, beat: Option<TlpBeat<'_>>) {
        let mut s = self.0.borrow_mut();
        let beat = beat.map(|b| Beat {
            header: *b.header,
            data: b.data.to_vec(),
            last: b.last,
        });
        match stream {
            TlpIn::Cq => s.cq.beat = beat,
            TlpIn::Rc => s.rc.beat = beat,
        }
    }

    fn tlp_ready(&self, stream: TlpIn) -> bool {
        let s = self.0.borrow();
        match stream {
            TlpIn::Cq => s.cq.ready,
            TlpIn::Rc => s.rc.ready,
        }
    }

    fn set_tlp_ready(&mut self, stream: TlpOut, ready: bool) {
        let mut s = self.0.borrow_mut();
        match stream {
            TlpOut::Cc => s.cc.ready = ready,
            TlpOut::Rq => s.rq.ready = ready,
        }
    }

    fn tlp(&self, stream: TlpOut) -> Option<TlpBeat<'_>> {
        let s = self.0.borrow();
        let beat = match stream {
            TlpOut::Cc => s.cc.sampled.clone(),
            TlpOut::Rq => s.rq.sampled.clone(),
        }?;
        // The trait lends the beat out of the device, which stands behind a RefCell here: leak it, tests
        // are short.
        let beat: &'static Beat = Box::leak(Box::new(beat));
        Some(TlpBeat {
            header: &beat.header,
            data: &beat.data,
            last: beat.last,
        })
    }

    fn set_mac_rx(&mut self, beat: Option<MacBeat<'_>>) {
        self.0.borrow_mut().rx = beat.map(|b| (b.data.to_vec(), b.last, b.error));
    }

    fn mac_rx_ready(&self) -> bool {
        true
    }

    fn set_mac_tx_ready(&mut self, ready: bool) {
        self.0.borrow_mut().tx_ready = ready;
    }

    fn mac_tx(&self) -> Result<Option<MacBeat<'_>>, BadKeep> {
        let s = self.0.borrow();
        let Some((data, last)) = s.tx_sampled.clone() else {
            return Ok(None);
        };
        if s.bad_keep {
            return Err(BadKeep);
        }
        let data: &'static [u8] = Box::leak(data.into_boxed_slice());
        Ok(Some(MacBeat {
            data,
            last,
            error: false,
        }))
    }

    fn settle(&mut self) -> Result<(), ModelError> {
        let s = &mut *self.0.borrow_mut();
        s.cq.ready = !s.reset && s.cycle.is_multiple_of(s.ready_every);
        s.rc.ready = s.cq.ready;
        s.cc.sampled = s.cc.beats.front().cloned();
        s.rq.sampled = s.rq.beats.front().cloned();
        s.tx_sampled = s.tx.front().cloned().flatten();
        Ok(())
    }

    fn edge(&mut self) -> Result<(), ModelError> {
        let s = &mut *self.0.borrow_mut();
        if s.cc.ready {
            s.cc.beats.pop_front();
        }
        if s.rq.ready {
            s.rq.beats.pop_front();
        }
        if s.tx_ready || matches!(s.tx.front(), Some(None)) {
            s.tx.pop_front();
        }
        if let (true, Some(beat)) = (s.cq.ready, s.cq.beat.clone()) {
            s.cq.data.extend(&beat.data);
            if beat.last {
                let data = std::mem::take(&mut s.cq.data);
                s.host_request(CqHdr(beat.header), data);
            }
        }
        if let (true, Some(beat)) = (s.rc.ready, s.rc.beat.clone()) {
            if s.rc.data.is_empty() {
                s.rc_first = s.cycle;
            }
            s.rc.data.extend(&beat.data);
            if beat.last {
                let data = std::mem::take(&mut s.rc.data);
                let seen = (s.rc_first, s.cycle, RcHdr(beat.header), data);
                s.completions.push(seen);
            }
        }
        if let Some((data, last, error)) = s.rx.clone() {
            s.rx_data.extend(&data);
            if last {
                let frame = std::mem::take(&mut s.rx_data);
                let cycle = s.cycle;
                s.frames.push((cycle, frame, error));
            }
        }
        s.cycle += 1;
        Ok(())
    }
}

/// A world of scripted NICs.
pub fn world(params: &WorldParams) -> (World, Vec<Handle>) {
    let scripts: Vec<Handle> = (0..params.nics)
        .map(|_| Script::new(params.nic.data_width / 8))
        .collect();
    let devices = scripts
        .iter()
        .map(|s| Box::new(ScriptedNic(s.clone())) as Box<dyn Device>)
        .collect();
    (World::with_devices(params, devices).unwrap(), scripts)
}

/// A shared world and the bus of NIC 0, enumerated.
pub fn enumerated(params: &WorldParams) -> (SharedWorld, NicBus, Handle) {
    let (world, scripts) = world(params);
    let world = world.shared();
    let mut bus = NicBus::new(&world, 0).unwrap();
    enumerate(&mut bus);
    (world, bus, scripts[0].clone())
}

/// Waits for the end of reset, places BAR0, turns memory, bus mastering and MSI-X on.
pub fn enumerate(bus: &mut NicBus) {
    for _ in 0..1000 {
        if bus.config_read(regs::ID).unwrap() != u32::MAX {
            break;
        }
        bus.advance(16).unwrap();
    }
    bus.config_write(regs::BAR0, 0xe000_0000).unwrap();
    bus.config_write(regs::BAR1, 0).unwrap();
    bus.config_write(regs::COMMAND, regs::COMMAND_MEMORY | regs::COMMAND_BUS_MASTER)
        .unwrap();
    bus.config_write(regs::MSIX, regs::MSIX_ENABLE).unwrap();
    // Max payload 256, read request 512.
    bus.config_write(regs::DEVICE_CONTROL, 0x2120).unwrap();
}
