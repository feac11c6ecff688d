//! Faults of the driver: what calls do, and what the driver says of errors.

use serde::{Deserialize, Deserializer};

use crate::offset::Offset;

/// Which calls are meant: all, those of one function, or one call only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// The C function's name; a `*` at the end stands for any ending. All functions, if left out.
    #[serde(default)]
    pub function: Option<String>,
    /// Only the call of this number of those meant, counted from 1 in each process since the fault began.
    #[serde(default)]
    pub call: Option<u64>,
}

impl Calls {
    /// Whether a function is meant.
    #[must_use]
    pub fn names(&self, function: &str) -> bool {
        match self.function.as_deref() {
            None => true,
            Some(name) => match name.strip_suffix('*') {
                Some(start) => function.starts_with(start),
                None => function == name,
            },
        }
    }
}

/// How slow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowCall {
    /// How long each call takes.
    pub takes: Offset,
    /// Which function's; all, if left out.
    #[serde(default)]
    pub function: Option<String>,
}

/// A code in place of an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallError {
    /// The header's `nvmlReturn_t`: 999 is what `nvidia-smi` shows as `ERR!`.
    pub code: u32,
    /// As for [`Calls`].
    #[serde(default)]
    pub function: Option<String>,
    /// As for [`Calls`].
    #[serde(default)]
    pub call: Option<u64>,
    /// Only this field of `nvmlDeviceGetFieldValues`.
    #[serde(default)]
    pub field: Option<u32>,
}

/// A number that means none, in place of an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BadValue {
    /// Which.
    #[serde(default)]
    pub value: NoNumber,
    /// As for [`Calls`].
    #[serde(default)]
    pub function: Option<String>,
    /// Only this field of `nvmlDeviceGetFieldValues`.
    #[serde(default)]
    pub field: Option<u32>,
}

/// Numbers that mean none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoNumber {
    /// All bits set.
    #[default]
    Ones,
    /// The blank of DCGM's header: 2147483632, 9223372036854775794.
    Blank,
}

/// A driver that goes, and what comes afterwards; left out, it comes back as it was.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverUnload {
    /// The kernel driver's version afterwards.
    #[serde(default)]
    pub version: Option<String>,
    /// The library's version afterwards.
    #[serde(default)]
    pub nvml: Option<String>,
    /// The CUDA version afterwards, as NVML writes it.
    #[serde(default)]
    pub cuda: Option<i32>,
}

/// An error that the driver reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xid {
    /// Its number.
    pub code: u32,
    /// Who hears of it.
    pub seen_by: SeenBy,
    /// How often it comes.
    pub repeat: u64,
    /// How long after each other.
    pub every: Offset,
    /// The words after process and name, instead of those of the number.
    pub text: Option<String>,
}

/// Who hears of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenBy {
    /// Event sets and the kernel log.
    #[default]
    Both,
    /// Event sets only.
    Driver,
    /// The kernel log only.
    Kernel,
}

impl Xid {
    /// One error, heard by all.
    #[must_use]
    pub fn once(code: u32) -> Self {
        Self {
            code,
            seen_by: SeenBy::Both,
            repeat: 1,
            every: Offset(0),
            text: None,
        }
    }

    /// How many of it there have been so long after the first, in milliseconds.
    #[must_use]
    pub fn count_after(&self, since_ms: i64) -> u64 {
        if since_ms < 0 {
            return 0;
        }
        match u64::try_from(since_ms)
            .unwrap_or(0)
            .checked_div(self.every.ms().unsigned_abs())
        {
            Some(steps) => steps.saturating_add(1).min(self.repeat),
            None => self.repeat,
        }
    }

    /// Whether event sets hear of it.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.seen_by != SeenBy::Kernel
    }

    /// Whether the kernel log has it.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.seen_by != SeenBy::Driver
    }
}

/// `79`, or a mapping with the code and more.
impl<'de> Deserialize<'de> for Xid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Full {
            code: u32,
            #[serde(default)]
            seen_by: SeenBy,
            #[serde(default = "one")]
            repeat: u64,
            #[serde(default)]
            every: Option<Offset>,
            #[serde(default)]
            text: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Code(u32),
            Full(Full),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Code(code) => Self::once(code),
            Form::Full(full) => Self {
                code: full.code,
                seen_by: full.seen_by,
                repeat: full.repeat.max(1),
                every: full.every.unwrap_or(Offset(0)),
                text: full.text,
            },
        })
    }
}

fn one() -> u64 {
    1
}

/// `true`, or a mapping.
pub(super) fn calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Calls>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        On(bool),
        Calls(Calls),
    }
    Ok(match Form::deserialize(deserializer)? {
        Form::On(on) => on.then(Calls::default),
        Form::Calls(calls) => Some(calls),
    })
}
