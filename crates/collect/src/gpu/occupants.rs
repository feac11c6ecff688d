//! Who is on a GPU, asked of the driver: processes, and the instances it is cut into.

use nvml::{Device, EccCounter, EccError, Error};

use super::reading::{GpuProcess, Instance, ProcessKind};

/// Processes kept of one GPU; the driver itself cuts its list at this length.
const PROCESSES_MAX: usize = 4096;

/// No GPU is cut into more.
const INSTANCES_MAX: usize = 32;

/// Asks who has a context on the GPU. `since_us` is the newest sample of the round before, 0 for none.
///
/// `None` where the driver keeps no such lists.
///
/// # Errors
///
/// Those of the lists of contexts; a board without samples of utilisation is none.
pub fn processes(device: &Device, since_us: &mut u64) -> Result<Option<Vec<GpuProcess>>, Error> {
    let mut all: Vec<GpuProcess> = Vec::new();
    let mut is_known = false;
    let lists = [
        (ProcessKind::Compute, device.compute_processes()?),
        (ProcessKind::Graphics, device.graphics_processes()?),
        (ProcessKind::Mps, device.mps_processes()?),
    ];
    for (kind, list) in lists {
        is_known |= list.is_some();
        for process in list.into_iter().flatten().take(PROCESSES_MAX) {
            add(
                &mut all,
                GpuProcess {
                    pid: process.pid,
                    kind,
                    memory_bytes: process.used_memory,
                    gpu_instance: process.gpu_instance,
                    ..GpuProcess::default()
                },
            );
        }
    }
    if all.is_empty() {
        return Ok(is_known.then_some(all));
    }
    // The samples are an extra: under MIG and on some boards there are none.
    let samples = device.process_utilization(*since_us).ok().flatten().unwrap_or_default();
    let mut newest = 0;
    for sample in samples {
        newest = newest.max(sample.timestamp_us);
        for process in all.iter_mut().filter(|p| p.pid == sample.pid) {
            process.sm_percent = sample.sm;
            process.memory_percent = sample.memory;
        }
    }
    *since_us = newest.max(*since_us);
    Ok(Some(all))
}

/// A process on two lists computes and draws; its memory is told on both and counts once.
fn add(all: &mut Vec<GpuProcess>, new: GpuProcess) {
    let is_same = |p: &&mut GpuProcess| p.pid == new.pid && p.gpu_instance == new.gpu_instance;
    match all.iter_mut().find(is_same) {
        Some(known) => {
            known.memory_bytes = known.memory_bytes.max(new.memory_bytes);
            if known.kind != new.kind {
                known.kind = match (known.kind, new.kind) {
                    (ProcessKind::Mps, _) | (_, ProcessKind::Mps) => ProcessKind::Mps,
                    _ => ProcessKind::Both,
                };
            }
        }
        None => all.push(new),
    }
}

/// Asks for the instances of a GPU under MIG; none where it is whole.
///
/// # Errors
///
/// Those of the questions that tell instances apart; what else an instance does not tell is absent.
pub fn instances(device: &Device) -> Result<Vec<Instance>, Error> {
    if !device.mig_mode()?.is_some_and(|mode| mode.current) {
        return Ok(Vec::new());
    }
    let mut instances = Vec::new();
    for part in device.mig_devices()?.into_iter().take(INSTANCES_MAX) {
        let Some(gpu_instance) = part.gpu_instance_id()? else {
            continue;
        };
        let memory = part.memory().ok().flatten();
        let profile = part.mig_profile().ok().flatten();
        let name = || part.name().ok().flatten().unwrap_or_default();
        instances.push(Instance {
            gpu_instance,
            compute_instance: part.compute_instance_id().ok().flatten(),
            profile: profile.unwrap_or_else(|| profile_of(&name())),
            uuid: part.uuid().ok().flatten().unwrap_or_default(),
            multiprocessors: part.mig_attributes().ok().flatten().map(|a| a.multiprocessors),
            memory_total: memory.map(|m| m.total),
            memory_used: memory.map(|m| m.used),
            memory_free: memory.map(|m| m.free),
            memory_reserved: memory.and_then(|m| m.reserved),
            ecc_uncorrected_volatile: part
                .ecc_errors(EccError::Uncorrected, EccCounter::Volatile)
                .ok()
                .flatten(),
        });
    }
    Ok(instances)
}

/// `1g.10gb` of `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
pub fn profile_of(name: &str) -> String {
    let profile = name.rsplit_once("MIG ").map_or("", |(_, profile)| profile.trim());
    profile.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(kind: ProcessKind, memory: u64) -> GpuProcess {
        GpuProcess {
            pid: 7,
            kind,
            memory_bytes: Some(memory),
            ..GpuProcess::default()
        }
    }

    #[test]
    fn a_process_on_two_lists_is_one_and_its_memory_counts_once() {
        let mut all = Vec::new();
        add(&mut all, process(ProcessKind::Compute, 10));
        add(&mut all, process(ProcessKind::Graphics, 12));
        assert_eq!(all, [process(ProcessKind::Both, 12)]);
        add(&mut all, process(ProcessKind::Mps, 1));
        assert_eq!(all, [process(ProcessKind::Mps, 12)]);
    }

    #[test]
    fn a_profile_stands_at_the_end_of_the_name() {
        assert_eq!(profile_of("NVIDIA H100 80GB HBM3 MIG 3g.40gb"), "3g.40gb");
        assert_eq!(profile_of("NVIDIA H100 80GB HBM3"), "");
    }
}
