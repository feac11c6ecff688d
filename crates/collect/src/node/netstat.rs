//! `/proc/net/netstat`, `snmp` and `snmp6`: what the protocols count.

use model::{Family, Kind, Millis};

use super::single;
use crate::source::Reader;
use crate::{Collector, Error, Paths, Readings, State};

/// Collects `node_netstat_*`.
pub struct Netstat {
    paths: Paths,
    reader: Reader,
}

impl Netstat {
    /// Reads below procfs.
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            reader: Reader::default(),
        }
    }

    /// Pairs of lines: names, then counts.
    fn pairs(&mut self, file: &str, families: &mut Vec<Family>) -> Result<(), Error> {
        let path = self.paths.proc(file);
        let text = self.reader.text(&path)?;
        let mut lines = text.lines().enumerate();
        while let (Some((i, names)), Some((_, counts))) = (lines.next(), lines.next()) {
            let form = || Error::form(&path, i + 1, "a line of names and one of counts", names);
            let (protocol, names) = names.split_once(':').ok_or_else(form)?;
            let (again, counts) = counts.split_once(':').ok_or_else(form)?;
            if protocol != again {
                return Err(form());
            }
            for (name, count) in names.split_ascii_whitespace().zip(counts.split_ascii_whitespace()) {
                push(families, protocol, name, count);
            }
        }
        Ok(())
    }

    /// One name and count a line; the protocol is the name up to its `6`.
    fn singles(&mut self, file: &str, families: &mut Vec<Family>) -> Result<(), Error> {
        let path = self.paths.proc(file);
        let text = self.reader.text(&path)?;
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            if let (Some(name), Some(count)) = (words.next(), words.next())
                && let Some(six) = name.find('6')
            {
                let (protocol, name) = name.split_at(six + 1);
                push(families, protocol, name, count);
            }
        }
        Ok(())
    }
}

impl Collector for Netstat {
    fn name(&self) -> &'static str {
        "netstat"
    }

    fn collect(&mut self, _: Millis) -> Readings {
        let mut families = Vec::new();
        let four = self
            .pairs("net/netstat", &mut families)
            .and_then(|()| self.pairs("net/snmp", &mut families));
        if let Err(error) = four {
            return Readings::failed(error);
        }
        let six = self.singles("net/snmp6", &mut families);
        let mut readings = Readings::of(families);
        readings.errors.extend(six.err().filter(|e| e.state() != State::Absent));
        readings
    }
}

fn push(families: &mut Vec<Family>, protocol: &str, name: &str, count: &str) {
    if let Some(count) = count.parse().ok().filter(|_| is_wanted(protocol, name)) {
        let metric = format!("node_netstat_{protocol}_{name}");
        let help = format!("Statistic {protocol}{name}.");
        families.push(single(metric, Kind::Unknown, help, count));
    }
}

/// node_exporter's default list.
fn is_wanted(protocol: &str, name: &str) -> bool {
    if name.ends_with("InErrors") || name.ends_with("InErrs") {
        return true;
    }
    match protocol {
        "Ip" => name == "Forwarding",
        "Ip6" | "IpExt" => matches!(name, "InOctets" | "OutOctets"),
        "Icmp" | "Icmp6" => matches!(name, "InMsgs" | "OutMsgs"),
        "TcpExt" => {
            name.starts_with("Listen")
                || name.starts_with("Syncookies")
                || matches!(name, "TCPSynRetrans" | "TCPTimeouts" | "TCPOFOQueue" | "TCPRcvQDrop")
        }
        "Tcp" => matches!(
            name,
            "ActiveOpens" | "InSegs" | "OutSegs" | "OutRsts" | "PassiveOpens" | "RetransSegs" | "CurrEstab"
        ),
        "Udp" | "Udp6" => matches!(
            name,
            "InDatagrams" | "OutDatagrams" | "NoPorts" | "RcvbufErrors" | "SndbufErrors"
        ),
        _ => false,
    }
}
