// SPDX-License-Identifier: Apache-2.0
//! Values of scenario files: names, queue pairs, addresses, hex. Each says what would be right.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use openrnic_driver::Gid;
use openrnic_spec as spec;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// A value of an enumeration, written as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<T>(pub T);

/// Enumerations that are written by name.
pub trait ByName: Copy + 'static {
    /// What the values are, for messages.
    const WHAT: &'static str;
    /// All values.
    fn all() -> &'static [Self];
    /// Name of a value.
    fn text(self) -> &'static str;
}

macro_rules! by_name {
    ($($ty:ty: $what:literal),*) => {
        $(impl ByName for $ty {
            const WHAT: &'static str = $what;
            fn all() -> &'static [Self] { <$ty>::ALL }
            fn text(self) -> &'static str { self.name() }
        })*
    };
}

by_name!(
    spec::QpState: "QP state", spec::QpType: "QP type", spec::GateRule: "rule of the gate",
    spec::CmdStatus: "command status", spec::WcStatus: "completion status", spec::WcOpcode: "completion opcode",
    spec::WqeOpcode: "operation", spec::Opcode: "packet opcode", spec::EventType: "event",
    spec::CounterId: "counter"
);

/// The name that is spelt most like `given`.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_lowercase();
    names
        .map(|name| (distance(&given, &name.to_lowercase()), name))
        .min()
        .filter(|(d, _)| *d <= 3)
        .map(|(_, n)| n)
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut corner = i;
        for (j, cb) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(0);
            let left = if j == 0 {
                i + 1
            } else {
                row.get(j).copied().unwrap_or(0)
            };
            let best = (corner + usize::from(ca != *cb)).min(above + 1).min(left + 1);
            corner = above;
            if j == 0
                && let Some(first) = row.first_mut()
            {
                *first = i + 1;
            }
            if let Some(place) = row.get_mut(j + 1) {
                *place = best;
            }
        }
    }
    row.last().copied().unwrap_or(0)
}

fn unknown<E: de::Error>(what: &str, given: &str, names: &[&str]) -> E {
    let hint = match nearest(given, names.iter().copied()) {
        Some(name) => format!("; did you mean `{name}`?"),
        None if names.len() <= 24 => format!("; there are {}", names.join(", ")),
        None => String::new(),
    };
    E::custom(format!("unknown {what} `{given}`{hint}"))
}

struct Text<T>(&'static str, fn(&str) -> Result<T, String>, PhantomData<T>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(E::custom)
    }
}

fn text<'de, T, D: Deserializer<'de>>(
    d: D,
    expecting: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    d.deserialize_str(Text(expecting, parse, PhantomData))
}

impl<'de, T: ByName> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<T: ByName> Visitor<'_> for V<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the name of a {}", T::WHAT)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Named<T>, E> {
                match T::all().iter().find(|v| v.text() == text) {
                    Some(value) => Ok(Named(*value)),
                    None => {
                        let names: Vec<&str> = T::all().iter().map(|v| v.text()).collect();
                        Err(unknown(T::WHAT, text, &names))
                    }
                }
            }
        }
        d.deserialize_str(V(PhantomData))
    }
}

/// A set of flags, written as a list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attrs(pub spec::QpAttrBit);

/// A set of access rights, written as a list of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights(pub spec::Access);

fn flags<'de, D: Deserializer<'de>>(d: D, what: &'static str, names: &[(u32, &'static str)]) -> Result<u32, D::Error> {
    let given = Vec::<toml::Spanned<String>>::deserialize(d)?;
    let mut bits = 0;
    for name in given {
        match names.iter().find(|(_, n)| *n == name.get_ref()) {
            Some((bit, _)) => bits |= bit,
            None => {
                let all: Vec<&str> = names.iter().map(|(_, n)| *n).collect();
                return Err(unknown(what, name.get_ref(), &all));
            }
        }
    }
    Ok(bits)
}

impl<'de> Deserialize<'de> for Attrs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let names: Vec<_> = spec::QpAttrBit::NAMES.iter().map(|(f, n)| (f.0, *n)).collect();
        flags(d, "attribute", &names).map(|bits| Self(spec::QpAttrBit(bits)))
    }
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let names: Vec<_> = spec::Access::NAMES.iter().map(|(f, n)| (f.0, *n)).collect();
        flags(d, "access right", &names).map(|bits| Self(spec::Access(bits)))
    }
}

/// Queue pairs: `group`, `group[3]`, `group[0..4]` (without 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpRef {
    /// Name of the group.
    pub group: String,
    /// Which of it; `None`: all.
    pub range: Option<Range<usize>>,
}

impl QpRef {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` names no queue pairs: write `group`, `group[3]` or `group[0..4]` (0 to 3)");
        let (group, range) = match text.split_once('[') {
            None => (text, None),
            Some((group, rest)) => {
                let inner = rest.strip_suffix(']').ok_or_else(wrong)?;
                let number = |s: &str| s.trim().parse::<usize>().map_err(|_| wrong());
                let range = match inner.split_once("..") {
                    Some((from, to)) => number(from)?..number(to)?,
                    None => {
                        let at = number(inner)?;
                        at..at.checked_add(1).ok_or_else(wrong)?
                    }
                };
                if range.is_empty() {
                    return Err(format!("`{text}` is empty: the end of a range is not part of it"));
                }
                (group, Some(range))
            }
        };
        if group.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            group: group.to_owned(),
            range,
        })
    }
}

impl fmt::Display for QpRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.range {
            None => write!(f, "{}", self.group),
            Some(r) if r.len() == 1 => write!(f, "{}[{}]", self.group, r.start),
            Some(r) => write!(f, "{}[{}..{}]", self.group, r.start, r.end),
        }
    }
}

impl<'de> Deserialize<'de> for QpRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text(d, "queue pairs like \"a[0]\"", Self::parse)
    }
}

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text(d, "a MAC address like \"02:00:00:00:00:01\"", |text| {
            let parts: Vec<Option<u8>> = text.split(':').map(|p| u8::from_str_radix(p, 16).ok()).collect();
            match parts[..] {
                [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)] => Ok(Self([a, b, c, d, e, f])),
                _ => Err(format!("`{text}` is no MAC address like \"02:00:00:00:00:01\"")),
            }
        })
    }
}

/// A GID, written as an IPv4 or IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GidText(pub Gid);

impl<'de> Deserialize<'de> for GidText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text(d, "an IP address like \"10.0.0.1\"", |text| match text.parse() {
            Ok(std::net::IpAddr::V4(ip)) => Ok(Self(Gid::from_ipv4(ip.octets()))),
            Ok(std::net::IpAddr::V6(ip)) => Ok(Self(Gid(ip.octets()))),
            Err(_) => Err(format!("`{text}` is no IP address like \"10.0.0.1\"")),
        })
    }
}

/// Bytes in hexadecimal; white space, `:` and `_` between them are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hex(pub Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text(d, "bytes in hexadecimal", |text| {
            let digits: Option<Vec<u8>> = text
                .chars()
                .filter(|c| !c.is_whitespace() && !matches!(c, ':' | '_'))
                .map(|c| c.to_digit(16).map(|d| d as u8))
                .collect();
            match digits {
                Some(d) if d.len() % 2 == 0 && !d.is_empty() => {
                    Ok(Self(d.chunks(2).map(|p| p.iter().fold(0, |v, x| v << 4 | x)).collect()))
                }
                Some(d) if d.is_empty() => Err("no bytes at all".to_owned()),
                Some(d) => Err(format!("{} hexadecimal digits: an even number makes bytes", d.len())),
                None => Err("not hexadecimal: digits 0 to 9 and a to f, with spaces, `:` or `_` between".to_owned()),
            }
        })
    }
}

/// A path MTU in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuBytes(pub spec::Mtu);

impl MtuBytes {
    /// In bytes.
    pub fn bytes(self) -> usize {
        128 << u8::from(self.0)
    }
}

impl<'de> Deserialize<'de> for MtuBytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let bytes = u32::deserialize(d)?;
        spec::Mtu::ALL
            .iter()
            .find(|m| 128u32 << u8::from(**m) == bytes)
            .map(|m| Self(*m))
            .ok_or_else(|| de::Error::custom(format!("{bytes} is no path MTU: 256, 512, 1024, 2048 or 4096")))
    }
}

/// A count that is exact (`5`) or bounded (`">= 5"`, `"<= 5"`, `"> 0"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    low: u64,
    high: u64,
}

impl Amount {
    /// Exactly this many.
    pub fn exactly(n: u64) -> Self {
        Self { low: n, high: n }
    }

    /// Whether a number is meant.
    pub fn holds(self, n: u64) -> bool {
        (self.low..=self.high).contains(&n)
    }

    /// The fewest that are meant.
    pub fn low(self) -> u64 {
        self.low
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.low, self.high) {
            (low, high) if low == high => write!(f, "{low}"),
            (low, u64::MAX) => write!(f, "at least {low}"),
            (0, high) => write!(f, "at most {high}"),
            (low, high) => write!(f, "{low} to {high}"),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a bound like \">= 1\"")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Amount, E> {
                u64::try_from(n)
                    .map(Amount::exactly)
                    .map_err(|_| E::custom(format!("{n}: a count is 0 or more")))
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Amount, E> {
                Ok(Amount::exactly(n))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                let text = text.trim();
                let parsed = [(">=", 0u8), ("<=", 1), (">", 2), ("<", 3)]
                    .iter()
                    .find_map(|(sign, kind)| {
                        let n: u64 = text.strip_prefix(sign)?.trim().parse().ok()?;
                        Some(match kind {
                            0 => Amount { low: n, high: u64::MAX },
                            1 => Amount { low: 0, high: n },
                            2 => Amount {
                                low: n.saturating_add(1),
                                high: u64::MAX,
                            },
                            _ => Amount {
                                low: 0,
                                high: n.saturating_sub(1),
                            },
                        })
                    });
                parsed.ok_or_else(|| E::custom(format!("`{text}` is neither a number nor a bound like \">= 1\"")))
            }
        }
        d.deserialize_any(V)
    }
}
