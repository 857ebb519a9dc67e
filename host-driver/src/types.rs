// SPDX-License-Identifier: Apache-2.0
//! Numbers that must not be mixed up.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $show:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $show, self.0)
            }
        }

        impl From<$name> for $inner {
            fn from(value: $name) -> $inner {
                value.0
            }
        }
    };
}

number!(
    /// Number of a queue pair: index and generation, 24 bits.
    Qpn(u32),
    "{:#08x}"
);
number!(
    /// Local key of a memory region.
    LKey(u32),
    "{:#010x}"
);
number!(
    /// Remote key of a memory region.
    RKey(u32),
    "{:#010x}"
);
number!(
    /// Address in a memory region as users and peers name it.
    Iova(u64),
    "{:#x}"
);
number!(
    /// Handle of a protection domain.
    PdHandle(u16),
    "{}"
);
number!(
    /// Number of a completion queue.
    Cqn(u16),
    "{}"
);
number!(
    /// Number of a shared receive queue.
    Srqn(u16),
    "{}"
);
number!(
    /// Handle of an XRC domain.
    XrcdHandle(u16),
    "{}"
);

impl Iova {
    /// The address `bytes` further on.
    #[must_use]
    pub fn offset(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// Packet sequence number: 24 bits, compared around the wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// Largest PSN.
    pub const MAX: u32 = 0xff_ffff;

    /// The low 24 bits of a number.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MAX)
    }

    /// As a number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The PSN `n` packets later.
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// How many packets `self` is later than `other`; negative when it is earlier (IBTA 9.7.1: half of
    /// the range counts as later).
    pub const fn diff(self, other: Self) -> i32 {
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }

    /// Whether `self` is later than `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.diff(other) > 0
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

/// A GID: 16 bytes in network order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The IPv4-mapped GID `::ffff:a.b.c.d`.
    pub const fn from_ipv4(ip: [u8; 4]) -> Self {
        let mut gid = [0; 16];
        gid[10] = 0xff;
        gid[11] = 0xff;
        let mut i = 0;
        while i < 4 {
            gid[12 + i] = ip[i];
            i += 1;
        }
        Self(gid)
    }
}

impl Gid {
    /// The address of an IPv4-mapped GID; nothing for another, which is an IPv6 address.
    pub fn ipv4(self) -> Option<[u8; 4]> {
        std::net::Ipv6Addr::from(self.0).to_ipv4_mapped().map(|ip| ip.octets())
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::net::Ipv6Addr::from(self.0))
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psns_compare_around_the_wrap() {
        let (a, b) = (Psn::new(0xff_fffe), Psn::new(3));
        assert_eq!(b.diff(a), 5);
        assert_eq!(a.diff(b), -5);
        assert!(b.is_after(a) && !a.is_after(b) && !a.is_after(a));
        assert_eq!(a.add(5), b);
        assert_eq!(Psn::new(0x80_0000).diff(Psn::new(0)), -0x80_0000);
        assert_eq!(Psn::new(0x1ff_ffff), Psn::new(0xff_ffff));
    }

    #[test]
    fn an_ipv4_gid_reads_as_one() {
        assert_eq!(Gid::from_ipv4([10, 0, 0, 1]).to_string(), "::ffff:10.0.0.1");
        assert_eq!(Gid::from_ipv4([10, 0, 0, 1]).ipv4(), Some([10, 0, 0, 1]));
        let mut other = Gid::from_ipv4([10, 0, 0, 1]);
        other.0[9] = 1;
        assert_eq!(other.ipv4(), None);
    }
}
