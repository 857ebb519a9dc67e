// SPDX-License-Identifier: Apache-2.0
//! Packed structures at the ports of a block, field by field.

/// Fields of a packed structure, the most significant first, as SystemVerilog declares them.
#[derive(Debug, Clone, Copy)]
pub struct Layout(pub &'static [(&'static str, u32)]);

impl Layout {
    /// Bits of the structure.
    pub fn width(&self) -> u32 {
        self.0.iter().map(|(_, w)| w).sum()
    }

    /// Lowest bit and width of a field.
    ///
    /// # Panics
    /// When there is no such field.
    pub fn field(&self, name: &str) -> (u32, u32) {
        let mut above = self.width();
        for (field, width) in self.0 {
            above -= width;
            if *field == name {
                return (above, *width);
            }
        }
        panic!("no field {name}");
    }
}

/// A bit vector of any width in 32-bit words, the least significant first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits(pub Vec<u32>);

impl Bits {
    /// Zeros.
    pub fn new(width: u32) -> Self {
        Self(vec![0; width.div_ceil(32) as usize])
    }

    /// Sets `width` (at most 64) bits from `lsb` on.
    ///
    /// # Panics
    /// When the value does not fit.
    pub fn set(&mut self, lsb: u32, width: u32, value: u64) {
        assert!(
            width >= 64 || value >> width == 0,
            "{value:#x} does not fit {width} bits"
        );
        for i in 0..width {
            let at = lsb + i;
            let word = &mut self.0[at as usize / 32];
            *word = *word & !(1 << (at % 32)) | ((value >> i & 1) as u32) << (at % 32);
        }
    }

    /// `width` (at most 64) bits from `lsb` on.
    pub fn get(&self, lsb: u32, width: u32) -> u64 {
        (0..width)
            .map(|i| u64::from(self.0[(lsb + i) as usize / 32] >> ((lsb + i) % 32) & 1) << i)
            .sum()
    }

    /// Sets bytes from `lsb` on, the first byte in the lowest bits.
    pub fn set_bytes(&mut self, lsb: u32, bytes: &[u8]) {
        for (i, b) in bytes.iter().enumerate() {
            self.set(lsb + 8 * i as u32, 8, u64::from(*b));
        }
    }

    /// `count` bytes from `lsb` on.
    pub fn bytes(&self, lsb: u32, count: usize) -> Vec<u8> {
        (0..count).map(|i| self.get(lsb + 8 * i as u32, 8) as u8).collect()
    }

    /// Puts another vector at `lsb`.
    pub fn put(&mut self, lsb: u32, width: u32, other: &Self) {
        for i in 0..width {
            self.set(lsb + i, 1, other.get(i, 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_is_the_most_significant() {
        let layout = Layout(&[("a", 3), ("b", 40), ("c", 5)]);
        assert_eq!(
            (layout.width(), layout.field("a"), layout.field("b"), layout.field("c")),
            (48, (45, 3), (5, 40), (0, 5))
        );
        let mut bits = Bits::new(48);
        bits.set(5, 40, 0xab_cdef_0123);
        assert_eq!(bits.get(5, 40), 0xab_cdef_0123);
        assert_eq!(bits.get(0, 5), 0);
        assert_eq!(bits.bytes(5, 5), [0x23, 0x01, 0xef, 0xcd, 0xab]);
    }
}
