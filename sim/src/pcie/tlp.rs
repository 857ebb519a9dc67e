// SPDX-License-Identifier: Apache-2.0
//! TLPs on the streams: sending them beat by beat, putting them together, byte enables.

use std::collections::VecDeque;

use crate::device::{Device, TlpBeat, TlpIn};
use crate::error::Misdeed;

/// A TLP to be given to the device.
#[derive(Debug, Clone)]
pub(super) struct Down {
    pub(super) header: [u8; 16],
    pub(super) data: Vec<u8>,
    /// Cycle before which it is not there.
    pub(super) not_before: u64,
}

/// Gives TLPs to the device in order, a beat at a time.
#[derive(Debug)]
pub(super) struct Sender {
    stream: TlpIn,
    pub(super) queue: VecDeque<Down>,
    /// First byte of the beat that is offered; `None` while nothing is.
    offered: Option<usize>,
    next: usize,
}

impl Sender {
    pub(super) fn new(stream: TlpIn) -> Self {
        Self {
            stream,
            queue: VecDeque::new(),
            offered: None,
            next: 0,
        }
    }

    pub(super) fn clear(&mut self, device: &mut dyn Device) {
        self.queue.clear();
        self.next = 0;
        if self.offered.take().is_some() {
            device.set_tlp(self.stream, None);
        }
    }

    /// Before the clock: offers the next beat unless one is waiting.
    pub(super) fn drive(&mut self, now: u64, device: &mut dyn Device) {
        if self.offered.is_some() {
            return;
        }
        let Some(down) = self.queue.front() else { return };
        if down.not_before > now {
            return;
        }
        let width = device.data_bytes();
        let end = (self.next + width).min(down.data.len());
        let last = end == down.data.len();
        device.set_tlp(
            self.stream,
            Some(TlpBeat {
                header: &down.header,
                data: &down.data[self.next..end],
                last,
            }),
        );
        self.offered = Some(self.next);
    }

    /// After the clock: notes what was taken; true when a TLP is through.
    pub(super) fn collect(&mut self, device: &mut dyn Device) -> bool {
        let Some(start) = self.offered else { return false };
        if !device.tlp_ready(self.stream) {
            return false;
        }
        self.offered = None;
        device.set_tlp(self.stream, None);
        let end = start + device.data_bytes();
        let through = self.queue.front().is_none_or(|down| end >= down.data.len());
        if through {
            self.queue.pop_front();
            self.next = 0;
        } else {
            self.next = end;
        }
        through
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Puts a device's packet together.
#[derive(Debug)]
pub(super) struct Receiver {
    name: &'static str,
    header: [u8; 16],
    data: Vec<u8>,
    beats: u64,
    /// What the device offered while it was not taken: it must still be there.
    held: Option<([u8; 16], Vec<u8>, bool)>,
}

/// A packet as it came.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) header: [u8; 16],
    /// Whole beats.
    pub(super) data: Vec<u8>,
    pub(super) beats: u64,
}

impl Receiver {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            header: [0; 16],
            data: Vec::new(),
            beats: 0,
            held: None,
        }
    }

    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.beats = 0;
        self.held = None;
    }

    /// Takes what the device offered in a cycle; a packet when it is complete.
    pub(super) fn take(
        &mut self,
        beat: Option<TlpBeat<'_>>,
        ready: bool,
        misdeed: &mut dyn FnMut(Misdeed),
    ) -> Option<Packet> {
        if let Some((header, data, last)) = self.held.take()
            && beat
                != Some(TlpBeat {
                    header: &header,
                    data: &data,
                    last,
                })
        {
            misdeed(Misdeed::NotHeld { stream: self.name });
        }
        let beat = beat?;
        if !ready {
            self.held = Some((*beat.header, beat.data.to_vec(), beat.last));
            return None;
        }
        if self.beats == 0 {
            self.header = *beat.header;
        } else if self.header != *beat.header {
            misdeed(Misdeed::HeaderChanged { stream: self.name });
        }
        self.beats += 1;
        // What no packet of 4096 bytes needs is not kept: a stream that never ends must not eat memory.
        if self.data.len() <= 4096 {
            self.data.extend_from_slice(beat.data);
        }
        if !beat.last {
            return None;
        }
        let packet = Packet {
            header: self.header,
            data: std::mem::take(&mut self.data),
            beats: self.beats,
        };
        self.beats = 0;
        Some(packet)
    }
}

impl Packet {
    /// The payload of `dw_len` double words, when exactly as many beats came.
    pub(super) fn payload(mut self, dw_len: u64, width: usize, name: &'static str) -> Result<Vec<u8>, Misdeed> {
        let bytes = dw_len * 4;
        if self.beats != bytes.div_ceil(width as u64).max(1) {
            let bytes = self.data.len() as u64;
            return Err(Misdeed::PayloadLength {
                stream: name,
                dw_len,
                bytes,
                beats: self.beats,
            });
        }
        self.data.truncate(bytes as usize);
        Ok(self.data)
    }
}

/// Which bytes a request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteRange {
    /// Address of the first byte enabled.
    pub(super) addr: u64,
    /// Bytes from the first to the last one enabled; 0 for a request without enabled bytes.
    pub(super) len: u64,
}

/// Double-word address and length and byte enables of `[addr, addr + len)`.
pub(super) fn enables_of(addr: u64, len: u64) -> (u64, u16, u8, u8) {
    let start = addr & !3;
    let (lead, tail) = ((addr & 3) as u8, ((addr + len) & 3) as u8);
    let dw_len = (addr + len).div_ceil(4) - addr / 4;
    let first = 0xf << lead & 0xf;
    let last = if tail == 0 { 0xf } else { 0xf >> (4 - tail) };
    if dw_len <= 1 {
        (start, 1, if len == 0 { 0 } else { first & last }, 0)
    } else {
        (start, dw_len as u16, first, last)
    }
}

/// The bytes of a request, or `None` when its byte enables are not allowed (PCIe base specification,
/// 2.2.5).
pub(super) fn range_of(addr: u64, dw_len: u64, first: u8, last: u8) -> Option<ByteRange> {
    if dw_len == 1 {
        if last != 0 {
            return None;
        }
        if first == 0 {
            return Some(ByteRange { addr, len: 0 });
        }
        let lead = u64::from(first.trailing_zeros());
        return Some(ByteRange {
            addr: addr + lead,
            len: u64::from(8 - first.leading_zeros()) - lead,
        });
    }
    // Holes are allowed in an aligned pair of double words only; first and last must not be empty.
    let pair = dw_len == 2 && addr.is_multiple_of(8);
    let solid_first = matches!(first, 0x8 | 0xc | 0xe | 0xf);
    let solid_last = matches!(last, 0x1 | 0x3 | 0x7 | 0xf);
    if first == 0 || last == 0 || !(pair || solid_first && solid_last) {
        return None;
    }
    let lead = u64::from(first.trailing_zeros());
    let tail = u64::from(last.leading_zeros() - 4);
    Some(ByteRange {
        addr: addr + lead,
        len: dw_len * 4 - lead - tail,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_enables_name_the_range_and_back() {
        for addr in 0x1000..0x1008u64 {
            for len in 1..40 {
                let (start, dw_len, first, last) = enables_of(addr, len);
                assert_eq!(
                    range_of(start, u64::from(dw_len), first, last),
                    Some(ByteRange { addr, len }),
                    "{addr:#x} {len}"
                );
            }
        }
        assert_eq!(enables_of(0x1001, 0), (0x1000, 1, 0, 0));
        assert_eq!(range_of(0x1000, 1, 0, 0), Some(ByteRange { addr: 0x1000, len: 0 }));
        assert_eq!(range_of(0x1000, 1, 0b1010, 0), Some(ByteRange { addr: 0x1001, len: 3 }));
    }

    #[test]
    fn byte_enables_that_pcie_forbids_are_found() {
        assert_eq!(range_of(0, 1, 0xf, 0xf), None);
        assert_eq!(range_of(0, 2, 0x0, 0xf), None);
        assert_eq!(range_of(0, 2, 0xf, 0x0), None);
        assert_eq!(range_of(0, 3, 0x5, 0xf), None);
        assert_eq!(range_of(4, 2, 0xf, 0x5), None);
        assert_eq!(range_of(8, 2, 0x5, 0x5), Some(ByteRange { addr: 8, len: 7 }));
    }
}
