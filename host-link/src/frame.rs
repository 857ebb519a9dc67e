// SPDX-License-Identifier: Apache-2.0
//! Frames of the host link: flags, escapes, CRC (`spec/link.toml`).

use openrnic_spec::{LINK_ESCAPE, LINK_ESCAPE_XOR, LINK_FLAG, LINK_MAX_PAYLOAD, LinkHead, LinkKind};

/// Bytes of a head.
const HEAD: usize = LinkHead::BYTES;

/// A frame without flags, escapes and CRC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its head; `payload_len` is that of `payload`.
    pub head: LinkHead,
    /// Its payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// What it carries, when that has a name.
    pub fn kind(&self) -> Option<LinkKind> {
        LinkKind::try_from(self.head.kind()).ok()
    }

    /// Its bytes on the line, a flag at either end.
    pub fn encode(&self) -> Vec<u8> {
        let head = self.head.with_payload_len(self.payload.len() as u16);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head.0);
        crc.update(&self.payload);
        let crc = crc.finalize().to_le_bytes();
        let mut out = vec![LINK_FLAG];
        for &byte in head.0.iter().chain(&self.payload).chain(&crc) {
            if byte == LINK_FLAG || byte == LINK_ESCAPE {
                out.extend([LINK_ESCAPE, byte ^ LINK_ESCAPE_XOR]);
            } else {
                out.push(byte);
            }
        }
        out.push(LINK_FLAG);
        out
    }
}

/// Finds frames in a stream of bytes.
#[derive(Debug, Default)]
pub struct Deframer {
    bytes: Vec<u8>,
    escaped: bool,
    damaged: bool,
    /// Things between flags that were no frame.
    pub bad: u64,
}

impl Deframer {
    /// Takes a byte (`None`: one that came without its stop bit); a frame when this one ends it.
    pub fn take(&mut self, byte: Option<u8>) -> Option<Frame> {
        match byte {
            Some(LINK_FLAG) => {
                let bytes = std::mem::take(&mut self.bytes);
                let whole = !std::mem::take(&mut self.escaped) & !std::mem::take(&mut self.damaged);
                if bytes.is_empty() && whole {
                    return None;
                }
                let frame = if whole { parse(&bytes) } else { None };
                self.bad += u64::from(frame.is_none());
                return frame;
            }
            Some(LINK_ESCAPE) => self.escaped = true,
            Some(byte) => {
                let flip = if std::mem::take(&mut self.escaped) {
                    LINK_ESCAPE_XOR
                } else {
                    0
                };
                self.put(byte ^ flip);
            }
            None => {
                self.damaged = true;
                self.escaped = false;
            }
        }
        None
    }

    /// Keeps a byte, unless what comes is too long for a frame anyway.
    fn put(&mut self, byte: u8) {
        if self.bytes.len() < HEAD + LINK_MAX_PAYLOAD as usize + 4 {
            self.bytes.push(byte);
        } else {
            self.damaged = true;
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Frame> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    let (head, payload) = body.split_first_chunk::<HEAD>()?;
    let head = LinkHead(*head);
    let right = crc32fast::hash(body).to_le_bytes() == *crc
        && usize::from(head.payload_len()) == payload.len()
        && head.rsvd_ok();
    right.then(|| Frame {
        head,
        payload: payload.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: LinkKind, payload: &[u8]) -> Frame {
        Frame {
            head: LinkHead::new()
                .with_kind(kind as u8)
                .with_session(0x7e)
                .with_seq(0x7d)
                .with_payload_len(payload.len() as u16),
            payload: payload.to_vec(),
        }
    }

    fn frames(bytes: impl IntoIterator<Item = u8>) -> (Vec<Frame>, u64) {
        let mut d = Deframer::default();
        let found = bytes.into_iter().filter_map(|b| d.take(Some(b))).collect();
        (found, d.bad)
    }

    /// By hand: flags and escapes in head and payload, the CRC of IEEE 802.3.
    #[test]
    fn golden_bytes_of_a_control_frame() {
        let f = frame(LinkKind::Control, &[0x03, 0, 0, 0, 0, 0, 0x7d, 0x7e]);
        let bytes = f.encode();
        assert_eq!(bytes[..9], [0x7e, 0x03, 0x7d, 0x5e, 0x7d, 0x5d, 0x00, 0x08, 0x00]);
        assert_eq!(bytes[11..21], [0x03, 0, 0, 0, 0, 0, 0x7d, 0x5d, 0x7d, 0x5e]);
        assert_eq!(bytes[21..], [0xfd, 0xd4, 0x66, 0xd6, 0x7e]);
        assert_eq!(frames(bytes), (vec![f], 0));
    }

    #[test]
    fn noise_before_and_a_cut_frame_cost_no_more_than_themselves() {
        let f = frame(LinkKind::Cq, &[7; 24]);
        let mut bytes = vec![1, 2, 3];
        bytes.extend(f.encode());
        bytes.extend(&f.encode()[..20]);
        bytes.extend(f.encode());
        assert_eq!(frames(bytes), (vec![f.clone(), f], 2));
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_found(payload in prop::collection::vec(any::<u8>(), 0..34).prop_map(|w| w.repeat(8))) {
            let f = frame(LinkKind::Rc, &payload);
            prop_assert_eq!(frames(f.encode()), (vec![f], 0));
        }

        /// Any bytes at all: nothing breaks, and nothing that a single changed byte makes is taken for the frame.
        #[test]
        fn a_changed_byte_is_found(payload in prop::collection::vec(any::<u8>(), 8..64), at in any::<prop::sample::Index>(), flip in 1u8..) {
            let f = frame(LinkKind::Rc, &payload);
            let mut bytes = f.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let (found, _) = frames(bytes);
            prop_assert!(!found.contains(&f) || at == 0 || found.len() == 1);
            prop_assert!(found.iter().all(|g| *g == f));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut d = Deframer::default();
            for b in bytes {
                d.take(Some(b));
                prop_assert!(d.bytes.len() <= HEAD + LINK_MAX_PAYLOAD as usize + 4);
            }
        }
    }
}
