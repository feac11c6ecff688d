//! An address on PCI Express, however it is written.

use std::fmt;

/// Domain, bus and device. The function is left out: a GPU is function 0, its sound device another.
///
/// Displayed as the driver writes it: `00000000:1B:00.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
}

impl PciAddress {
    /// Reads `0000:1b:00`, `0000:1b:00.0`, `00000000:1B:00.0`; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split(':');
        let (domain, bus, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (device, function) = rest.split_once('.').unwrap_or((rest, "0"));
        let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
        if parts.next().is_some() || ![domain, bus, device, function].into_iter().all(is_hex) {
            return None;
        }
        Some(Self {
            domain: u32::from_str_radix(domain, 16).ok()?,
            bus: u8::from_str_radix(bus, 16).ok()?,
            device: u8::from_str_radix(device, 16).ok()?,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}:{:02X}:{:02X}.0", self.domain, self.bus, self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_an_address_are_equal() {
        let address = PciAddress::parse("00000000:1B:00.0");
        assert!(address.is_some());
        for text in ["0000:1b:00", "0000:1b:00.0", "0000:1B:00.1"] {
            assert_eq!(PciAddress::parse(text), address, "{text}");
        }
        for text in ["", "1b:00.0", "0000:1b:00:00", "0000:xx:00", "0000:1b:", "+0:1b:00"] {
            assert_eq!(PciAddress::parse(text), None, "{text}");
        }
        assert_eq!(address.map(|a| a.to_string()).as_deref(), Some("00000000:1B:00.0"));
    }
}
