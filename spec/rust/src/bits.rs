// SPDX-License-Identifier: Apache-2.0
//! Fields of up to 64 bits anywhere in a byte string, in the two orders that the specification uses.

fn check(width: u32, value: u64) {
    debug_assert!((1..=64).contains(&width), "width {width}");
    debug_assert!(
        width == 64 || value >> width == 0,
        "{value:#x} does not fit {width} bits"
    );
}

/// Reads `width` bits from bit `start`, counted from the least significant bit of the first byte.
pub fn get_le(bytes: &[u8], start: u32, width: u32) -> u64 {
    (0..width).rev().fold(0, |value, i| {
        let at = start + i;
        value << 1 | u64::from(bytes[(at / 8) as usize] >> (at % 8) & 1)
    })
}

/// Writes `width` bits from bit `start`, counted from the least significant bit of the first byte.
///
/// # Panics
/// In debug builds, when `value` has more than `width` bits.
pub fn set_le(bytes: &mut [u8], start: u32, width: u32, value: u64) {
    check(width, value);
    for i in 0..width {
        let at = start + i;
        put(&mut bytes[(at / 8) as usize], at % 8, value >> i & 1);
    }
}

/// Reads `width` bits from bit `start`, counted from the most significant bit of the first byte.
pub fn get_be(bytes: &[u8], start: u32, width: u32) -> u64 {
    (start..start + width).fold(0, |value, at| {
        value << 1 | u64::from(bytes[(at / 8) as usize] >> (7 - at % 8) & 1)
    })
}

/// Writes `width` bits from bit `start`, counted from the most significant bit of the first byte.
///
/// # Panics
/// In debug builds, when `value` has more than `width` bits.
pub fn set_be(bytes: &mut [u8], start: u32, width: u32, value: u64) {
    check(width, value);
    for i in 0..width {
        let at = start + i;
        put(&mut bytes[(at / 8) as usize], 7 - at % 8, value >> (width - 1 - i) & 1);
    }
}

fn put(byte: &mut u8, bit: u32, value: u64) {
    *byte = *byte & !(1 << bit) | u8::from(value != 0) << bit;
}
