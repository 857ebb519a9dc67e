// SPDX-License-Identifier: Apache-2.0
//! A board behind a serial line as a [`Device`]: its TLP streams are frames, its reset begins a session.

use std::collections::VecDeque;

use openrnic_sim::device::{BadKeep, Device, MacBeat, TlpBeat, TlpIn, TlpOut};
use openrnic_sim::model::ModelError;
use openrnic_spec::{CqHdr, LINK_SLOTS, LinkKind};

use crate::endpoint::{Endpoint, LinkParams, LinkStats};
use crate::line::Line;

/// Bytes of a beat.
const BEAT: usize = 8;
/// Bytes of a TLP header.
const HEADER: usize = CqHdr::BYTES;
/// Frames that wait to go out while more are taken.
const BACKLOG: usize = 2 * LINK_SLOTS as usize;

/// A TLP stream to the board: what is offered, and the frame that it becomes.
#[derive(Debug, Default)]
struct Up {
    offered: Option<(Vec<u8>, bool)>,
    payload: Vec<u8>,
    taken: bool,
}

/// A TLP stream from the board: frames, and the beat that is shown.
#[derive(Debug, Default)]
struct Down {
    frames: VecDeque<Vec<u8>>,
    /// First byte of the next beat.
    at: usize,
    ready: bool,
    shown: Option<([u8; HEADER], [u8; BEAT], bool)>,
}

impl Down {
    fn show(&mut self) {
        self.shown = self.frames.front().and_then(|f| {
            let header = *f.first_chunk::<HEADER>()?;
            let beat = *f.get(self.at..)?.first_chunk::<BEAT>()?;
            Some((header, beat, self.at + BEAT >= f.len()))
        });
    }

    /// After the edge: what was shown and wanted is gone.
    fn advance(&mut self) {
        let Some((_, _, last)) = self.shown.filter(|_| self.ready) else {
            return;
        };
        self.at += BEAT;
        if last {
            self.frames.pop_front();
            self.at = HEADER;
        }
    }
}

/// The board. A clock cycle of it is a tick of the line. Its MAC has no pins here: it is on the board.
pub struct SerialDevice {
    line: Box<dyn Line>,
    endpoint: Endpoint,
    now: u64,
    session: u8,
    reset: bool,
    bus_master: bool,
    /// What the board was told last: run, bus master.
    told: Option<(bool, bool)>,
    cq: Up,
    rc: Up,
    cc: Down,
    rq: Down,
    failed: Option<String>,
}

impl SerialDevice {
    /// A board on a line. The session begins with the first tick.
    pub fn new(line: Box<dyn Line>, params: LinkParams) -> Self {
        Self {
            line,
            endpoint: Endpoint::new(params),
            now: 0,
            session: 0,
            reset: false,
            bus_master: false,
            told: None,
            cq: Up::default(),
            rc: Up::default(),
            cc: Down::default(),
            rq: Down::default(),
            failed: None,
        }
    }

    /// What went over the line.
    pub fn stats(&self) -> LinkStats {
        self.endpoint.stats()
    }

    fn up(&mut self, stream: TlpIn) -> &mut Up {
        match stream {
            TlpIn::Cq => &mut self.cq,
            TlpIn::Rc => &mut self.rc,
        }
    }

    fn down(&mut self, stream: TlpOut) -> &mut Down {
        match stream {
            TlpOut::Cc => &mut self.cc,
            TlpOut::Rq => &mut self.rq,
        }
    }

    /// A session of its own for each life of the function: what a reset ends cannot come after it.
    fn begin(&mut self) {
        // What is still on its way from the life before is of another session.
        self.session = self.session.wrapping_add(1);
        self.endpoint.begin(self.now, self.session);
        self.told = None;
        for up in [&mut self.cq, &mut self.rc] {
            up.payload.clear();
        }
        for down in [&mut self.cc, &mut self.rq] {
            *down = Down {
                ready: down.ready,
                at: HEADER,
                ..Down::default()
            };
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += 1;
        self.line.tick().map_err(|e| e.to_string())?;
        for byte in self.line.receive() {
            self.endpoint.take(self.now, byte).map_err(|e| e.to_string())?;
        }
        while let Some((kind, payload)) = self.endpoint.receive() {
            if payload.len() < HEADER + BEAT || payload.len() % BEAT != 0 {
                return Err(format!(
                    "the board sent a TLP of {} bytes, header included: not whole beats",
                    payload.len()
                ));
            }
            match kind {
                LinkKind::Cc => self.cc.frames.push_back(payload),
                _ => self.rq.frames.push_back(payload),
            }
        }
        // While the function is in reset, the new session has time to begin.
        let pins = (!self.reset, self.bus_master && !self.reset);
        if self.told != Some(pins) && (self.told.is_some() || pins.0) {
            self.told = Some(pins);
            self.endpoint.control(pins.0, pins.1);
        }
        if self.line.ready()
            && let Some(bytes) = self.endpoint.poll(self.now).map_err(|e| e.to_string())?
        {
            self.line.send(&bytes).map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

impl Device for SerialDevice {
    fn data_bytes(&self) -> usize {
        BEAT
    }

    fn set_reset(&mut self, on: bool) {
        if on && !self.reset {
            self.begin();
        }
        self.reset = on;
    }

    fn set_bus_master(&mut self, on: bool) {
        self.bus_master = on;
    }

    fn set_port_up(&mut self, _up: bool) {}

    fn set_tlp(&mut self, stream: TlpIn, beat: Option<TlpBeat<'_>>) {
        self.up(stream).offered = beat.map(|b| {
            let mut bytes = b.header.to_vec();
            bytes.extend(b.data);
            bytes.resize(HEADER + BEAT, 0);
            (bytes, b.last)
        });
    }

    fn tlp_ready(&self, stream: TlpIn) -> bool {
        match stream {
            TlpIn::Cq => self.cq.taken,
            TlpIn::Rc => self.rc.taken,
        }
    }

    fn set_tlp_ready(&mut self, stream: TlpOut, ready: bool) {
        self.down(stream).ready = ready;
    }

    fn tlp(&self, stream: TlpOut) -> Option<TlpBeat<'_>> {
        let down = match stream {
            TlpOut::Cc => &self.cc,
            TlpOut::Rq => &self.rq,
        };
        down.shown.as_ref().map(|(header, data, last)| TlpBeat {
            header,
            data,
            last: *last,
        })
    }

    fn set_mac_rx(&mut self, _beat: Option<MacBeat<'_>>) {}

    fn mac_rx_ready(&self) -> bool {
        true
    }

    fn set_mac_tx_ready(&mut self, _ready: bool) {}

    fn mac_tx(&self) -> Result<Option<MacBeat<'_>>, BadKeep> {
        Ok(None)
    }

    fn settle(&mut self) -> Result<(), ModelError> {
        self.cc.show();
        self.rq.show();
        // Completions for the board never wait for requests to it.
        let room = self.endpoint.waiting() < BACKLOG;
        self.cq.taken = room && !self.reset;
        self.rc.taken = !self.reset;
        Ok(())
    }

    fn edge(&mut self) -> Result<(), ModelError> {
        if let Some(message) = &self.failed {
            return Err(ModelError::Device {
                message: message.clone(),
            });
        }
        self.cc.advance();
        self.rq.advance();
        for (kind, up) in [(LinkKind::Rc, &mut self.rc), (LinkKind::Cq, &mut self.cq)] {
            if let Some((bytes, last)) = up.offered.as_ref().filter(|_| up.taken) {
                let from = if up.payload.is_empty() { 0 } else { HEADER };
                up.payload.extend(&bytes[from..]);
                if *last {
                    self.endpoint.send(kind, std::mem::take(&mut up.payload));
                }
            }
        }
        self.step().map_err(|message| {
            self.failed = Some(message.clone());
            ModelError::Device { message }
        })
    }
}
