//! HMAC (RFC 2104), for signatures and for CRAM-MD5.

use sha2::Digest;

/// The block of MD5 and of SHA-256, in bytes.
const BLOCK: usize = 64;

/// The code of a text under a key, with a hash of 64-byte blocks.
pub fn hmac<D: Digest>(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0u8; BLOCK];
    if key.len() > BLOCK {
        let hash = D::digest(key);
        block[..hash.len()].copy_from_slice(&hash);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = D::new().chain_update(pad(0x36)).chain_update(text).finalize();
    D::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use md5::Md5;
    use sha2::Sha256;

    use super::super::call::hex;
    use super::*;

    #[test]
    fn codes_are_those_of_the_standards() {
        // RFC 2202 case 2, RFC 4231 cases 2 and 6.
        let what = b"what do ya want for nothing?";
        assert_eq!(hex(&hmac::<Md5>(b"Jefe", what)), "750c783e6ab0b503eaa86e310a5db738");
        assert_eq!(
            hex(&hmac::<Sha256>(b"Jefe", what)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let long = [0xaa; 131];
        assert_eq!(
            hex(&hmac::<Sha256>(
                &long,
                b"Test Using Larger Than Block-Size Key - Hash Key First"
            )),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }
}
