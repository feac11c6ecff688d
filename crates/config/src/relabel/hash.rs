//! The hash of `hashmod`: the last eight bytes of MD5, so that shards agree with Prometheus'.
//!
//! MD5 (RFC 1321) is written out here because it serves no security and nothing else needs it.

/// The last eight bytes of the MD5 digest, big-endian.
pub(super) fn of(text: &str) -> u64 {
    let digest = md5(text.as_bytes());
    // The digest is its four words in little-endian order.
    let word = |w: u32| u64::from(w.swap_bytes());
    word(digest[2]) << 32 | word(digest[3])
}

/// Rotations by round and step.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

fn md5(bytes: &[u8]) -> [u32; 4] {
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 16];
        for (word, four) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        }
        mix(&mut state, &words);
    }
    state
}

fn mix(state: &mut [u32; 4], words: &[u32; 16]) {
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (f, word) = match step / 16 {
            0 => ((b & c) | (!b & d), step),
            1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), (7 * step) % 16),
        };
        let sum = a.wrapping_add(f).wrapping_add(sine(step)).wrapping_add(words[word]);
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(TURNS[step / 16][step % 4]));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d]) {
        *old = old.wrapping_add(new);
    }
}

/// RFC 1321's table: the whole part of 2^32 · |sin(step + 1)|.
fn sine(step: usize) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "0 <= |sin| < 1, so the product fits"
    )]
    let word = (4_294_967_296.0 * ((step + 1) as f64).sin().abs()) as u32;
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let hex: String = md5(text.as_bytes())
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hex, want, "{text:?}");
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        check("", "d41d8cd98f00b204e9800998ecf8427e");
        check("abc", "900150983cd24fb0d6963f7d28e17f72");
        check(
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a",
        );
        assert_eq!(of("abc"), 0xd696_3f7d_28e1_7f72);
    }
}
