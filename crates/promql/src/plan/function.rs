//! The functions by what they work on. A new function is a line here and its arithmetic in `eval`.

/// Functions over the samples of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeFunction {
    AbsentOverTime,
    AvgOverTime,
    Changes,
    CountOverTime,
    Delta,
    Deriv,
    DoubleExponentialSmoothing,
    FirstOverTime,
    Idelta,
    Increase,
    Irate,
    LastOverTime,
    MadOverTime,
    MaxOverTime,
    MinOverTime,
    PredictLinear,
    PresentOverTime,
    QuantileOverTime,
    Rate,
    Resets,
    StddevOverTime,
    StdvarOverTime,
    SumOverTime,
    TsOfFirstOverTime,
    TsOfLastOverTime,
    TsOfMaxOverTime,
    TsOfMinOverTime,
}

/// Functions over an instant vector, a scalar or texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstantFunction {
    Absent,
    Calendar(Calendar),
    Clamp,
    ClampMax,
    ClampMin,
    Histogram(HistogramFunction),
    Info,
    LabelJoin,
    LabelReplace,
    Math(Math),
    MaxOf,
    MinOf,
    Round,
    Scalar,
    Sort(SortBy),
    StartTimestamp,
    Time,
    Timestamp,
    Vector,
}

/// Parts of a date in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calendar {
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    DaysInMonth,
    Hour,
    Minute,
    Month,
    Year,
}

/// Functions of histograms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HistogramFunction {
    /// `histogram_quantile`
    Quantile,
    /// `histogram_quantiles`
    Quantiles,
    /// `histogram_fraction`
    Fraction,
    /// `histogram_avg`, and like the following ones of native histograms alone.
    Avg,
    /// `histogram_count`
    Count,
    /// `histogram_sum`
    Sum,
    /// `histogram_stddev`
    Stddev,
    /// `histogram_stdvar`
    Stdvar,
}

/// The order of an instant query's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortBy {
    Value { descending: bool },
    Label { descending: bool },
}

/// Functions of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Math {
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Deg,
    Exp,
    Floor,
    Ln,
    Log10,
    Log2,
    Rad,
    Sgn,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
}

impl RangeFunction {
    /// The function of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "absent_over_time" => Self::AbsentOverTime,
            "avg_over_time" => Self::AvgOverTime,
            "changes" => Self::Changes,
            "count_over_time" => Self::CountOverTime,
            "delta" => Self::Delta,
            "deriv" => Self::Deriv,
            "double_exponential_smoothing" => Self::DoubleExponentialSmoothing,
            "first_over_time" => Self::FirstOverTime,
            "idelta" => Self::Idelta,
            "increase" => Self::Increase,
            "irate" => Self::Irate,
            "last_over_time" => Self::LastOverTime,
            "mad_over_time" => Self::MadOverTime,
            "max_over_time" => Self::MaxOverTime,
            "min_over_time" => Self::MinOverTime,
            "predict_linear" => Self::PredictLinear,
            "present_over_time" => Self::PresentOverTime,
            "quantile_over_time" => Self::QuantileOverTime,
            "rate" => Self::Rate,
            "resets" => Self::Resets,
            "stddev_over_time" => Self::StddevOverTime,
            "stdvar_over_time" => Self::StdvarOverTime,
            "sum_over_time" => Self::SumOverTime,
            "ts_of_first_over_time" => Self::TsOfFirstOverTime,
            "ts_of_last_over_time" => Self::TsOfLastOverTime,
            "ts_of_max_over_time" => Self::TsOfMaxOverTime,
            "ts_of_min_over_time" => Self::TsOfMinOverTime,
            _ => return None,
        })
    }

    /// Whether the result is a sample of the window itself, which then keeps its metric name.
    pub(crate) const fn keeps_name(self) -> bool {
        matches!(self, Self::FirstOverTime | Self::LastOverTime)
    }
}

impl InstantFunction {
    /// The function of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "absent" => Self::Absent,
            "clamp" => Self::Clamp,
            "clamp_max" => Self::ClampMax,
            "clamp_min" => Self::ClampMin,
            "day_of_month" => Self::Calendar(Calendar::DayOfMonth),
            "day_of_week" => Self::Calendar(Calendar::DayOfWeek),
            "day_of_year" => Self::Calendar(Calendar::DayOfYear),
            "days_in_month" => Self::Calendar(Calendar::DaysInMonth),
            "hour" => Self::Calendar(Calendar::Hour),
            "minute" => Self::Calendar(Calendar::Minute),
            "month" => Self::Calendar(Calendar::Month),
            "year" => Self::Calendar(Calendar::Year),
            "histogram_quantile" => Self::Histogram(HistogramFunction::Quantile),
            "histogram_quantiles" => Self::Histogram(HistogramFunction::Quantiles),
            "histogram_fraction" => Self::Histogram(HistogramFunction::Fraction),
            "histogram_avg" => Self::Histogram(HistogramFunction::Avg),
            "histogram_count" => Self::Histogram(HistogramFunction::Count),
            "histogram_sum" => Self::Histogram(HistogramFunction::Sum),
            "histogram_stddev" => Self::Histogram(HistogramFunction::Stddev),
            "histogram_stdvar" => Self::Histogram(HistogramFunction::Stdvar),
            "info" => Self::Info,
            "label_join" => Self::LabelJoin,
            "label_replace" => Self::LabelReplace,
            "max_of" => Self::MaxOf,
            "min_of" => Self::MinOf,
            "round" => Self::Round,
            "scalar" => Self::Scalar,
            "sort" => Self::Sort(SortBy::Value { descending: false }),
            "sort_desc" => Self::Sort(SortBy::Value { descending: true }),
            "sort_by_label" => Self::Sort(SortBy::Label { descending: false }),
            "sort_by_label_desc" => Self::Sort(SortBy::Label { descending: true }),
            "start_timestamp" => Self::StartTimestamp,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            "vector" => Self::Vector,
            _ => Self::Math(Math::named(name)?),
        })
    }

    /// Whether the result depends on the moment even where the arguments do not.
    pub(super) const fn depends_on_time(self) -> bool {
        matches!(self, Self::Calendar(_) | Self::Time | Self::Timestamp)
    }
}

impl Math {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "abs" => Self::Abs,
            "acos" => Self::Acos,
            "acosh" => Self::Acosh,
            "asin" => Self::Asin,
            "asinh" => Self::Asinh,
            "atan" => Self::Atan,
            "atanh" => Self::Atanh,
            "ceil" => Self::Ceil,
            "cos" => Self::Cos,
            "cosh" => Self::Cosh,
            "deg" => Self::Deg,
            "exp" => Self::Exp,
            "floor" => Self::Floor,
            "ln" => Self::Ln,
            "log10" => Self::Log10,
            "log2" => Self::Log2,
            "rad" => Self::Rad,
            "sgn" => Self::Sgn,
            "sin" => Self::Sin,
            "sinh" => Self::Sinh,
            "sqrt" => Self::Sqrt,
            "tan" => Self::Tan,
            "tanh" => Self::Tanh,
            _ => return None,
        })
    }

    /// The function's value.
    pub(crate) fn apply(self, x: f64) -> f64 {
        match self {
            Self::Abs => x.abs(),
            Self::Acos => x.acos(),
            Self::Acosh => x.acosh(),
            Self::Asin => x.asin(),
            Self::Asinh => x.asinh(),
            Self::Atan => x.atan(),
            Self::Atanh => x.atanh(),
            Self::Ceil => x.ceil(),
            Self::Cos => x.cos(),
            Self::Cosh => x.cosh(),
            Self::Deg => x * 180.0 / std::f64::consts::PI,
            Self::Exp => x.exp(),
            Self::Floor => x.floor(),
            Self::Ln => x.ln(),
            Self::Log10 => x.log10(),
            Self::Log2 => x.log2(),
            Self::Rad => x * std::f64::consts::PI / 180.0,
            Self::Sgn if x < 0.0 => -1.0,
            Self::Sgn if x > 0.0 => 1.0,
            Self::Sgn => x,
            Self::Sin => x.sin(),
            Self::Sinh => x.sinh(),
            Self::Sqrt => x.sqrt(),
            Self::Tan => x.tan(),
            Self::Tanh => x.tanh(),
        }
    }
}
