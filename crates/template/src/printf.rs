//! Go's `printf`: flags, width, precision, argument indexes, and verbs by the kind of the value.

use std::fmt::Write as _;

use model::text::quote;

use crate::number::{Form, format_float};
use crate::print::{plain, write_plain};
use crate::value::Value;

/// The largest width and precision; larger ones are ignored.
const WIDTH_MAX: i64 = 10_000;

/// Formats `args` after `format`; mistakes are shown in the text, as Go shows them.
pub(crate) fn printf(format: &str, args: &[Value]) -> String {
    let mut printer = Printer {
        args,
        next: 0,
        reordered: false,
        out: String::new(),
    };
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        printer.out.push_str(&rest[..at]);
        rest = printer.verb(&rest[at + 1..]);
        if printer.out.len() > crate::exec::OUTPUT_MAX {
            return printer.out;
        }
    }
    printer.out.push_str(rest);
    printer.extra();
    printer.out
}

struct Printer<'a> {
    args: &'a [Value],
    next: usize,
    reordered: bool,
    out: String,
}

/// What stands between `%` and the verb.
#[derive(Debug, Clone, Copy, Default)]
struct Spec {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

impl<'a> Printer<'a> {
    /// Writes one directive; `rest` begins behind the percent sign.
    fn verb<'r>(&mut self, mut rest: &'r str) -> &'r str {
        let mut spec = Spec::default();
        while let Some(flag) = rest.chars().next().filter(|c| "+-# 0".contains(*c)) {
            match flag {
                '+' => spec.plus = true,
                '-' => spec.minus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                _ => spec.zero = true,
            }
            rest = &rest[1..];
        }
        let mut good_index = true;
        rest = self.index(rest, &mut good_index);
        if let Some(left) = rest.strip_prefix('*') {
            rest = left;
            match self.star() {
                Some(width) => {
                    spec.minus |= width < 0;
                    spec.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => self.out.push_str("%!(BADWIDTH)"),
            }
        } else {
            (spec.width, rest) = number(rest);
        }
        if let Some(left) = rest.strip_prefix('.') {
            rest = self.index(left, &mut good_index);
            if let Some(left) = rest.strip_prefix('*') {
                rest = left;
                match self.star() {
                    Some(precision) => spec.precision = usize::try_from(precision).ok(),
                    None => self.out.push_str("%!(BADPREC)"),
                }
            } else {
                let (precision, left) = number(rest);
                spec.precision = Some(precision.unwrap_or(0));
                rest = left;
            }
        }
        rest = self.index(rest, &mut good_index);
        let Some(verb) = rest.chars().next() else {
            self.out.push_str("%!(NOVERB)");
            return rest;
        };
        rest = &rest[verb.len_utf8()..];
        if verb == '%' {
            self.out.push('%');
        } else if !good_index {
            let _ = write!(self.out, "%!{verb}(BADINDEX)");
        } else if let Some(value) = self.args.get(self.next) {
            self.next += 1;
            let text = formatted(verb, spec, value);
            self.out.push_str(&text);
        } else {
            let _ = write!(self.out, "%!{verb}(MISSING)");
        }
        rest
    }

    /// `[3]`: the argument that comes next.
    fn index<'r>(&mut self, rest: &'r str, good: &mut bool) -> &'r str {
        let Some(body) = rest.strip_prefix('[') else {
            return rest;
        };
        self.reordered = true;
        let Some((digits, left)) = body.split_once(']') else {
            *good = false;
            return body;
        };
        match digits.parse::<usize>() {
            Ok(at) if (1..=self.args.len()).contains(&at) => self.next = at - 1,
            _ => *good = false,
        }
        left
    }

    fn star(&mut self) -> Option<i64> {
        let value = self.args.get(self.next)?;
        self.next += 1;
        match value.underlying() {
            Value::Int(n) if n.abs() <= WIDTH_MAX => Some(n),
            _ => None,
        }
    }

    fn extra(&mut self) {
        if self.reordered || self.next >= self.args.len() {
            return;
        }
        self.out.push_str("%!(EXTRA ");
        for (at, value) in self.args[self.next..].iter().enumerate() {
            if at > 0 {
                self.out.push_str(", ");
            }
            match value {
                Value::Nil => self.out.push_str("<nil>"),
                value => {
                    let _ = write!(self.out, "{}=", value.type_name());
                    write_plain(value, &mut self.out);
                }
            }
        }
        self.out.push(')');
    }
}

fn number(rest: &str) -> (Option<usize>, &str) {
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    let value = rest[..len].parse::<i64>().ok().filter(|n| *n <= WIDTH_MAX);
    (value.and_then(|n| usize::try_from(n).ok()), &rest[len..])
}

/// One value after its verb.
fn formatted(verb: char, spec: Spec, value: &Value) -> String {
    if verb == 'T' {
        return pad(value.type_name().to_owned(), spec);
    }
    let value = match (verb, value) {
        // What prints in a way of its own does so for verbs of texts.
        ('v' | 's' | 'q' | 'x' | 'X', Value::Moment(_) | Value::Span(_)) => Value::from(plain(value)),
        ('v' | 's' | 'q' | 'x' | 'X', Value::Object(object)) if object.text().is_some() => Value::from(plain(value)),
        _ => value.underlying(),
    };
    let text = match &value {
        Value::Bool(_) if matches!(verb, 'v' | 't') => plain(&value),
        Value::Int(n) => return integer(verb, spec, n.unsigned_abs(), *n < 0).unwrap_or_else(|| bad(verb, &value)),
        Value::Uint(n) => return integer(verb, spec, *n, false).unwrap_or_else(|| bad(verb, &value)),
        Value::Float(n) => return float(verb, spec, *n).unwrap_or_else(|| bad(verb, &value)),
        Value::Text(text) => match text_verb(verb, spec, text) {
            Some(text) => text,
            None => return bad(verb, &value),
        },
        Value::List(list) if verb != 'v' || spec.width.is_some() => {
            let items: Vec<String> = list.items().iter().map(|item| formatted(verb, spec, item)).collect();
            return format!("[{}]", items.join(" "));
        }
        Value::Map(map) if verb != 'v' || spec.width.is_some() => {
            let one = |(key, value): (&std::sync::Arc<str>, &Value)| {
                let key = formatted(verb, spec, &Value::Text(key.clone()));
                format!("{key}:{}", formatted(verb, spec, value))
            };
            return format!("map[{}]", map.iter().map(one).collect::<Vec<_>>().join(" "));
        }
        Value::Nil if verb != 'v' => return format!("%!{verb}(<nil>)"),
        _ => plain(&value),
    };
    pad(text, Spec { zero: false, ..spec })
}

fn bad(verb: char, value: &Value) -> String {
    format!("%!{verb}({}={})", value.type_name(), plain(value))
}

fn text_verb(verb: char, spec: Spec, text: &str) -> Option<String> {
    let cut = match spec.precision.and_then(|p| text.char_indices().nth(p)) {
        Some((at, _)) => &text[..at],
        None => text,
    };
    Some(match verb {
        'v' if spec.sharp => quote(cut),
        'v' | 's' => cut.to_owned(),
        'q' if spec.sharp && !cut.contains('`') => format!("`{cut}`"),
        'q' => quote(cut),
        'x' => cut.bytes().map(|b| format!("{b:02x}")).collect(),
        'X' => cut.bytes().map(|b| format!("{b:02X}")).collect(),
        _ => return None,
    })
}

fn integer(verb: char, spec: Spec, n: u64, is_negative: bool) -> Option<String> {
    let (digits, prefix) = match verb {
        'v' | 'd' => (n.to_string(), ""),
        'b' => (format!("{n:b}"), if spec.sharp { "0b" } else { "" }),
        'o' => (format!("{n:o}"), if spec.sharp { "0" } else { "" }),
        'O' => (format!("{n:o}"), "0o"),
        'x' => (format!("{n:x}"), if spec.sharp { "0x" } else { "" }),
        'X' => (format!("{n:X}"), if spec.sharp { "0X" } else { "" }),
        'c' => return Some(pad(character(n).to_string(), spec)),
        'q' => return Some(pad(format!("'{}'", character(n)), spec)),
        'U' => return Some(pad(format!("U+{n:04X}"), spec)),
        _ => return None,
    };
    let digits = match spec.precision {
        Some(0) if n == 0 => String::new(),
        Some(p) => format!("{digits:0>p$}"),
        None => digits,
    };
    let spec = Spec {
        zero: spec.zero && spec.precision.is_none(),
        ..spec
    };
    Some(signed(&digits, prefix, is_negative, spec))
}

fn character(n: u64) -> char {
    u32::try_from(n)
        .ok()
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn float(verb: char, spec: Spec, n: f64) -> Option<String> {
    let (form, default) = match verb {
        'v' => (Form::General, None),
        'g' | 'G' => (Form::General, None),
        'e' | 'E' => (Form::Exponent, Some(6)),
        'f' | 'F' => (Form::Plain, Some(6)),
        _ => return None,
    };
    let text = format_float(n, form, spec.precision.or(default));
    let unsigned = text.trim_start_matches(['-', '+']);
    let unsigned = match verb {
        'E' | 'G' if n.is_finite() => unsigned.to_uppercase(),
        _ => unsigned.to_owned(),
    };
    // An infinity always has its sign, and is padded with spaces.
    let spec = Spec {
        zero: spec.zero && n.is_finite(),
        plus: spec.plus || n == f64::INFINITY,
        ..spec
    };
    Some(signed(&unsigned, "", n.is_sign_negative() && !n.is_nan(), spec))
}

/// Sign, prefix and digits, zeros between them to the width if the flag asks for it.
fn signed(digits: &str, prefix: &str, is_negative: bool, spec: Spec) -> String {
    let sign = match (is_negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    let taken = sign.len() + prefix.len();
    match spec.width {
        Some(width) if spec.zero && !spec.minus => {
            let width = width.saturating_sub(taken);
            format!("{sign}{prefix}{digits:0>width$}")
        }
        _ => pad(format!("{sign}{prefix}{digits}"), spec),
    }
}

fn pad(text: String, spec: Spec) -> String {
    match (spec.width, spec.minus) {
        (None, _) => text,
        (Some(width), true) => format!("{text:<width$}"),
        (Some(width), false) => format!("{text:>width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, args: &[Value], want: &str) {
        assert_eq!(printf(format, args), want, "{format}");
    }

    #[test]
    fn verbs_write_as_in_go() {
        check(
            "%.2f|%5.1f|%-6.1f|%06.2f",
            &[1.0.into(), 2.25.into(), 3.0.into(), (-1.5).into()],
            "1.00|  2.2|3.0   |-01.50",
        );
        check(
            "%d|%5d|%-5d|%05d|%+d|%x|%X|%o|%b|%c|%U",
            &[42i64; 11].map(Value::from),
            "42|   42|42   |00042|+42|2a|2A|52|101010|*|U+002A",
        );
        check(
            "%s|%q|%8s|%-8s|%.2s|%x",
            &["abc"; 6].map(Value::from),
            "abc|\"abc\"|     abc|abc     |ab|616263",
        );
        check("%v %v %v", &[Value::Nil, true.into(), 1e6.into()], "<nil> true 1e+06");
        check(
            "%e %E %g %G %.3g",
            &[1234.5; 5].map(Value::from),
            "1.234500e+03 1.234500E+03 1234.5 1234.5 1.23e+03",
        );
        check(
            "%t %T %T %T",
            &[true.into(), 1i64.into(), "x".into(), 1.5.into()],
            "true int string float64",
        );
        check("%5.1f%%", &[99.55.into()], " 99.5%");
        check("%f", &[f64::INFINITY.into()], "+Inf");
    }

    #[test]
    fn mistakes_are_shown() {
        check("%d", &["x".into()], "%!d(string=x)");
        check("%s", &[1i64.into()], "%!s(int=1)");
        check("%d %d", &[1i64.into()], "1 %!d(MISSING)");
        check("%d", &[1i64.into(), "y".into()], "1%!(EXTRA string=y)");
        check("100%", &[], "100%!(NOVERB)");
        check("%!", &[1i64.into()], "%!!(int=1)");
    }

    #[test]
    fn width_and_argument_can_be_chosen() {
        check(
            "%*d|%.*f",
            &[5i64.into(), 42i64.into(), 1i64.into(), 2.25.into()],
            "   42|2.2",
        );
        check("%[2]d %[1]d", &[1i64.into(), 2i64.into()], "2 1");
        check("%[5]d", &[1i64.into()], "%!d(BADINDEX)");
    }
}
