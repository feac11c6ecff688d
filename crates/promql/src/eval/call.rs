//! Functions over instant vectors and scalars.

use model::QueryError;

use super::grid::Grid;
use super::selector::Take;
use super::series::{ABSENT, Operand, Scalar, Series, is_present};
use super::{Evaluator, absent, over_time::seconds, time_fn};
use crate::native;
use crate::plan::{Calendar, HistogramFunction, InstantFunction, Kind, Node};

impl Evaluator<'_> {
    /// Evaluates a call such as `abs(x)`.
    pub(super) fn call(
        &self,
        function: InstantFunction,
        node: &Node,
        args: &[Node],
        grid: Grid,
    ) -> Result<Operand, QueryError> {
        match function {
            InstantFunction::Math(math) => self.each_value(&args[0], grid, |_, v| math.apply(v)),
            InstantFunction::Round => {
                let nearest = self.optional(args.get(1), 1.0, grid)?;
                self.each_value(&args[0], grid, |i, v| round(v, nearest.at(i)))
            }
            InstantFunction::Clamp => self.clamp(args, grid),
            InstantFunction::ClampMin => {
                let low = self.scalar(&args[1], grid)?;
                self.each_value(&args[0], grid, |i, v| larger(low.at(i), v))
            }
            InstantFunction::ClampMax => {
                let high = self.scalar(&args[1], grid)?;
                self.each_value(&args[0], grid, |i, v| smaller(high.at(i), v))
            }
            InstantFunction::MaxOf => Ok(Operand::Scalar(
                self.scalar(&args[0], grid)?.zip(&self.scalar(&args[1], grid)?, larger),
            )),
            InstantFunction::MinOf => Ok(Operand::Scalar(
                self.scalar(&args[0], grid)?.zip(&self.scalar(&args[1], grid)?, smaller),
            )),
            InstantFunction::Absent => {
                let series = self.vector(&args[0], grid)?;
                Ok(Operand::Vector(absent::instant(&args[0], &series, grid)))
            }
            InstantFunction::Scalar => Ok(Operand::Scalar(Scalar::Steps(single(
                &self.vector(&args[0], grid)?,
                grid,
            )))),
            InstantFunction::Vector => {
                let value = self.scalar(&args[0], grid)?;
                let values = (0..grid.len).map(|i| value.at(i)).collect();
                Ok(Operand::Vector(vec![Series::new(model::Labels::empty(), values)]))
            }
            InstantFunction::Time => Ok(Operand::Scalar(Scalar::Steps(now(grid)))),
            InstantFunction::Timestamp => self.timestamp(&args[0], grid),
            InstantFunction::Calendar(calendar) => self.calendar(calendar, args, grid),
            InstantFunction::Sort(by) => self.sort(by, node, args, grid),
            InstantFunction::LabelReplace => self.label_replace(args, grid),
            InstantFunction::LabelJoin => self.label_join(args, grid),
            InstantFunction::Info => self.info(args, grid),
            InstantFunction::Histogram(histogram) => self.histogram(histogram, args, grid),
            // Our store knows none.
            InstantFunction::StartTimestamp => {
                self.vector(&args[0], grid)?;
                Ok(Operand::Vector(Vec::new()))
            }
        }
    }

    /// Functions of histograms.
    fn histogram(&self, function: HistogramFunction, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        use HistogramFunction as F;
        match function {
            F::Quantile => self.histogram_quantile(args, grid),
            F::Quantiles => self.histogram_quantiles(args, grid),
            F::Fraction => self.histogram_fraction(args, grid),
            F::Avg => self.each_native(&args[0], grid, |h| h.sum / h.count),
            F::Count => self.each_native(&args[0], grid, |h| h.count),
            F::Sum => self.each_native(&args[0], grid, |h| h.sum),
            F::Stddev => self.each_native(&args[0], grid, |h| native::variance(h).sqrt()),
            F::Stdvar => self.each_native(&args[0], grid, native::variance),
        }
    }

    /// Makes a number of every native histogram; numbers are left out and the metric's name goes.
    fn each_native(&self, arg: &Node, grid: Grid, f: impl Fn(&model::Histogram) -> f64) -> Result<Operand, QueryError> {
        let mut series = self.vector(arg, grid)?;
        series.retain(|s| s.natives.iter().any(Option::is_some));
        for one in &mut series {
            let natives = std::mem::take(&mut one.natives);
            for (value, native) in one.values.iter_mut().zip(natives) {
                *value = native.map_or(ABSENT, |h| f(&h));
            }
            self.rename(one);
        }
        self.merged(series)
    }

    /// Applies `f` to every number, given its step; histograms are left out and the metric's name goes.
    fn each_value(&self, arg: &Node, grid: Grid, f: impl Fn(usize, f64) -> f64) -> Result<Operand, QueryError> {
        let mut series = self.vector(arg, grid)?;
        without_natives(&mut series);
        for one in &mut series {
            for (i, value) in one.values.iter_mut().enumerate() {
                if is_present(*value) {
                    *value = f(i, *value);
                }
            }
            self.rename(one);
        }
        self.merged(series)
    }

    fn clamp(&self, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        let (low, high) = (self.scalar(&args[1], grid)?, self.scalar(&args[2], grid)?);
        let clamped = |i: usize, v: f64| {
            let (low, high) = (low.at(i), high.at(i));
            if high < low {
                ABSENT
            } else {
                larger(low, smaller(high, v))
            }
        };
        let Operand::Vector(mut series) = self.each_value(&args[0], grid, clamped)? else {
            return Err(super::mistyped("instant vector"));
        };
        series.retain(Series::any_present);
        Ok(Operand::Vector(series))
    }

    fn optional(&self, arg: Option<&Node>, default: f64, grid: Grid) -> Result<Scalar, QueryError> {
        arg.map_or(Ok(Scalar::Const(default)), |node| self.scalar(node, grid))
    }

    /// The moment of a selector's sample; of anything else the moment of the step.
    fn timestamp(&self, arg: &Node, grid: Grid) -> Result<Operand, QueryError> {
        let mut series = match &arg.kind {
            Kind::Select(select) => self.instant(select, grid, Take::Moment)?,
            _ => {
                let mut series = self.vector(arg, grid)?;
                for one in &mut series {
                    for i in (0..grid.len).filter(|i| one.has(*i)).collect::<Vec<_>>() {
                        one.values[i] = seconds(grid.time(i));
                    }
                    one.natives = Vec::new();
                }
                series
            }
        };
        series.iter_mut().for_each(|s| self.rename(s));
        self.merged(series)
    }

    fn calendar(&self, calendar: Calendar, args: &[Node], grid: Grid) -> Result<Operand, QueryError> {
        match args {
            [] => {
                let values = (0..grid.len).map(|i| time_fn::part(calendar, grid.time(i).div_euclid(1000) as f64));
                Ok(Operand::Vector(vec![Series::new(
                    model::Labels::empty(),
                    values.collect(),
                )]))
            }
            [arg, ..] => self.each_value(arg, grid, |_, v| time_fn::part(calendar, v)),
        }
    }
}

/// Leaves histograms out, and series that are nothing else.
fn without_natives(series: &mut Vec<Series>) {
    if series.iter().all(|s| s.natives.is_empty()) {
        return;
    }
    series.iter_mut().for_each(|s| s.natives = Vec::new());
    series.retain(Series::any_present);
}

/// The seconds of each step.
fn now(grid: Grid) -> Vec<f64> {
    (0..grid.len).map(|i| seconds(grid.time(i))).collect()
}

/// The value of the only sample of each step, NaN where there is none or more than one.
fn single(series: &[Series], grid: Grid) -> Vec<f64> {
    let mut values = vec![f64::NAN; grid.len];
    let mut seen = vec![false; grid.len];
    for one in series {
        for (i, value) in one.values.iter().enumerate().filter(|(_, v)| is_present(**v)) {
            values[i] = if seen[i] { f64::NAN } else { *value };
            seen[i] = true;
        }
    }
    values
}

/// The multiple of `nearest` closest to `value`, half a step upwards.
fn round(value: f64, nearest: f64) -> f64 {
    let inverse = 1.0 / nearest;
    (value * inverse + 0.5).floor() / inverse
}

/// The larger number: +Inf where either is, else NaN where either is.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a == f64::INFINITY || b == f64::INFINITY {
        f64::INFINITY
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.max(b)
    }
}

/// The smaller number: -Inf where either is, else NaN where either is.
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    -larger(-a, -b)
}
