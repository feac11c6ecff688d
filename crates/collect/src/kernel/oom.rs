//! The lines of one kill, joined.

use model::Millis;

use super::Event;

/// Lines of one kill come within milliseconds.
const TOGETHER_MS: Millis = 10_000;

/// Remembers the line that tells what ran out, for the line that names the victim.
#[derive(Debug, Default)]
pub struct OomJoin {
    detail: Option<Detail>,
}

#[derive(Debug)]
struct Detail {
    time: Millis,
    pid: Option<u32>,
    constraint: Option<String>,
    cgroup: Option<String>,
}

impl OomJoin {
    /// Completes a kill from the line before it, and its constraint in any case.
    pub fn see(&mut self, event: &mut Event) {
        match event.class {
            "oom-detail" if event.constraint.is_some() => {
                event.constraint = event.constraint.take().map(|word| word.to_ascii_lowercase());
                self.detail = Some(Detail {
                    time: event.time,
                    pid: event.pid,
                    constraint: event.constraint.clone(),
                    cgroup: event.cgroup.clone(),
                });
            }
            "oom-kill" => {
                let is_same =
                    |detail: &Detail| detail.pid == event.pid && (event.time - detail.time).abs() <= TOGETHER_MS;
                if let Some(detail) = self.detail.take().filter(is_same) {
                    event.constraint = detail.constraint;
                    event.cgroup = detail.cgroup;
                }
                if event.constraint.is_none() {
                    let of_cgroup = event.message.starts_with("Memory cgroup");
                    event.constraint = Some(if of_cgroup { "memcg" } else { "none" }.to_owned());
                }
            }
            _ => {}
        }
    }
}
