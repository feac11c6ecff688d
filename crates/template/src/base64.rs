//! Base64 with the alphabet that is harmless in an address (RFC 4648, section 5), padded.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, b| group << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = usize::try_from(group >> (18 - 6 * at) & 63).unwrap_or(0);
            out.push(if at <= chunk.len() {
                char::from(ALPHABET[digit])
            } else {
                '='
            });
        }
    }
    out
}

/// # Errors
///
/// Go's message with the byte at which the text is wrong.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let error = |at: usize| Err(format!("illegal base64 data at input byte {at}"));
    let bytes: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    for (index, chunk) in bytes.chunks(4).enumerate() {
        let start = index * 4;
        let digits = chunk.iter().take_while(|b| **b != b'=').count();
        let is_last = start + 4 >= bytes.len();
        let padding_fits = chunk[digits..].iter().all(|b| *b == b'=') && (digits == 4 || is_last && digits >= 2);
        let mut group = 0_u32;
        for (at, byte) in chunk[..digits].iter().enumerate() {
            match ALPHABET.iter().position(|b| b == byte) {
                Some(digit) => group = group << 6 | u32::try_from(digit).unwrap_or(0),
                None => return error(start + at),
            }
        }
        if chunk.len() < 4 || !padding_fits {
            return error(start + digits);
        }
        let group = group << (6 * (4 - digits));
        out.extend_from_slice(&group.to_be_bytes()[1..digits]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_decodes() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("flush>>", "Zmx1c2g-Pg=="),
        ] {
            assert_eq!(encode(text.as_bytes()), encoded);
            assert_eq!(decode(encoded).as_deref(), Ok(text.as_bytes()));
        }
        for wrong in ["Zg", "Z===", "Zg==Zg==", "a+b=", "not-valid-base64!"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
