//! What stands on the GPU page: the usual fields, or those of a counter list in dcgm-exporter's own format.
//!
//! The list is read as the exporter reads it (a comma-separated file whose comments begin with `#`) and refused where it
//! refuses: another number of columns than three, a stray quote, a field that DCGM does not have, a type that Prometheus
//! does not have. A field that DCGM has and this program does not show is accepted, and a remark says why.

use model::Kind;

use super::field::{Field, FieldTable, Meaning, Show};
use super::names::{Generation, Names};
use crate::Error;

/// The exporter's own lists have fewer than 200 lines.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Faults told at once.
const FAULTS_MAX: usize = 20;

/// What stands on the page, in its order.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The metrics.
    pub columns: Vec<Column>,
    /// Whether every line tells the driver's version, under the name of its generation.
    pub has_driver_label: bool,
    /// Further labels on every line of a GPU: name on the page, word.
    pub labels: Vec<(&'static str, String)>,
    /// What was asked for and is not shown, with the reason.
    pub remarks: Vec<String>,
}

/// One metric of the page.
#[derive(Debug, Clone)]
pub struct Column {
    /// The name on the page.
    pub name: String,
    /// The help on the page.
    pub help: String,
    /// The type on the page.
    pub kind: Kind,
    /// Whose labels its lines have.
    pub generation: Generation,
    /// Where its value comes from.
    pub field: Field,
}

impl Selection {
    /// What is shown without a list: the exporter's default fields and those of its other fields that are worth a look.
    #[must_use]
    pub fn usual(table: &FieldTable, names: Names) -> Self {
        Self::of_shown(table, names, |show| show != Show::Asked)
    }

    /// What the exporter shows without a list.
    #[must_use]
    pub fn only_default(table: &FieldTable, names: Names) -> Self {
        Self::of_shown(table, names, |show| show == Show::Default)
    }

    fn of_shown(table: &FieldTable, names: Names, is_shown: impl Fn(Show) -> bool) -> Self {
        let mut columns: Vec<Column> = Vec::new();
        for generation in names.generations() {
            for field in table
                .fields
                .iter()
                .filter(|f| is_shown(f.show) || is_new_default(f, *generation))
            {
                let name = match generation {
                    Generation::Old => &field.name,
                    Generation::New => &field.new,
                };
                // With both generations, a field that was not renamed stands once.
                if columns.iter().all(|column| column.name != *name) {
                    columns.push(Column {
                        name: name.clone(),
                        help: field.help(*generation),
                        kind: field.kind,
                        generation: *generation,
                        field: field.clone(),
                    });
                }
            }
        }
        Self {
            columns,
            has_driver_label: true,
            labels: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// What a counter list asks for. `file` names it in messages.
    ///
    /// # Errors
    ///
    /// [`Error::Counters`] with the lines that the exporter would refuse.
    pub fn of_counters(table: &FieldTable, file: &str, list: &[u8]) -> Result<Self, Error> {
        let list = String::from_utf8_lossy(list.get(..LIST_BYTES_MAX).unwrap_or(list));
        let mut selection = Self {
            columns: Vec::new(),
            has_driver_label: false,
            labels: Vec::new(),
            remarks: Vec::new(),
        };
        let mut faults = Vec::new();
        let (records, broken) = records(&list);
        for record in records {
            if let Err(message) = selection.add(table, &record) {
                faults.push((record.line, message));
            }
        }
        faults.extend(broken);
        if faults.is_empty() {
            return Ok(selection);
        }
        let more = faults.len().saturating_sub(FAULTS_MAX);
        let lines = faults.iter().take(FAULTS_MAX);
        let mut message: Vec<String> = lines
            .map(|(line, what)| format!("{file}, line {line}: {what}"))
            .collect();
        if more > 0 {
            message.push(format!("{file}: {more} more lines are wrong"));
        }
        Err(Error::Counters {
            message: message.join("\n"),
        })
    }

    fn add(&mut self, table: &FieldTable, record: &Record) -> Result<(), String> {
        let [name, kind, help] = record.columns.as_slice() else {
            return Err(format!(
                "expected 3 columns (field, type, help), got {}",
                record.columns.len()
            ));
        };
        let meaning = table.meaning(name).ok_or_else(|| match name.strip_prefix('\u{feff}') {
            Some(_) => "the file begins with a byte order mark, which is no comment".to_owned(),
            None => format!("DCGM has no field {name:?}"),
        })?;
        // The exporter does not look at the type of counters that are its own.
        if !name.starts_with("DCGM_EXP_")
            && !["gauge", "counter", "histogram", "summary", "label"].contains(&kind.as_str())
        {
            return Err(format!("Prometheus has no type {kind:?}"));
        }
        match meaning {
            Meaning::Other(reason) => self.remark(record, &format!("{name} is not shown: {reason}")),
            Meaning::Label(label) if kind == "label" => self.add_label(name, &label.source),
            Meaning::Label(_) => self.remark(record, &format!("{name} is not shown: a text is a label or nothing")),
            Meaning::Metric(field, _) if kind == "label" => self.add_label(name, &field.source),
            Meaning::Metric(..) if self.columns.iter().any(|column| column.name == *name) => {
                self.remark(record, &format!("{name} is there twice"));
            }
            Meaning::Metric(field, generation) => self.columns.push(Column {
                name: name.clone(),
                help: help.clone(),
                kind: match kind.as_str() {
                    "gauge" => Kind::Gauge,
                    "counter" => Kind::Counter,
                    // A lone number has neither buckets nor quantiles.
                    _ => Kind::Unknown,
                },
                generation,
                field: field.clone(),
            }),
        }
        Ok(())
    }

    fn add_label(&mut self, name: &str, word: &str) {
        if self.labels.iter().all(|(known, _)| *known != name) {
            // Lives as long as the program: a list is read once, and its names are those of DCGM.
            self.labels.push((name.to_owned().leak(), word.to_owned()));
        }
    }

    fn remark(&mut self, record: &Record, what: &str) {
        self.remarks.push(format!("line {}: {what}", record.line));
    }

    /// The words to ask for.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let of_columns = self.columns.iter().map(|column| column.field.source.clone());
        let of_labels = self.labels.iter().map(|(_, word)| word.clone());
        of_columns.chain(of_labels).collect()
    }
}

/// From 4.9 on the exporter shows the memory in all by default.
fn is_new_default(field: &Field, generation: Generation) -> bool {
    generation == Generation::New && field.source == "memory_total" && field.show != Show::Asked
}

/// A line of the list, or several where a quote spans them.
struct Record {
    line: usize,
    columns: Vec<String>,
}

/// Reads comma-separated values as Go's `encoding/csv` does with `#` for comments, up to the first thing that is wrong;
/// blanks around a value are cut off, as the exporter does.
fn records(text: &str) -> (Vec<Record>, Option<(usize, String)>) {
    let mut records: Vec<Record> = Vec::new();
    let mut lines = text.split_inclusive('\n').zip(1..);
    let mut columns_expected = None;
    while let Some((line, number)) = lines.next() {
        let mut line = line.trim_end_matches('\n');
        line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut columns = Vec::new();
        let mut rest = line;
        loop {
            let Some(quoted) = rest.strip_prefix('"') else {
                let (column, after) = rest.split_once(',').map_or((rest, None), |(c, after)| (c, Some(after)));
                if column.contains('"') {
                    return (
                        records,
                        Some((number, "a quote within a value that has none around it".to_owned())),
                    );
                }
                columns.push(column.trim_matches(' ').to_owned());
                match after {
                    Some(after) => rest = after,
                    None => break,
                }
                continue;
            };
            let mut value = String::new();
            let mut open = quoted;
            let after = loop {
                let Some((part, after)) = open.split_once('"') else {
                    value.push_str(open);
                    let Some((next, _)) = lines.next() else {
                        return (records, Some((number, "a quote that is never closed".to_owned())));
                    };
                    value.push('\n');
                    open = next.trim_end_matches('\n');
                    open = open.strip_suffix('\r').unwrap_or(open);
                    continue;
                };
                value.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        value.push('"');
                        open = more;
                    }
                    None => break after,
                }
            };
            columns.push(value.trim_matches(' ').to_owned());
            if after.is_empty() {
                break;
            }
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => return (records, Some((number, "text after a closing quote".to_owned()))),
            }
        }
        let expected = *columns_expected.get_or_insert(columns.len());
        if columns.len() != expected {
            let what = format!("{} columns where the first line has {expected}", columns.len());
            return (records, Some((number, what)));
        }
        records.push(Record { line: number, columns });
    }
    (records, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::field::FIELDS;

    fn read(list: &str) -> Result<Selection, Error> {
        Selection::of_counters(
            &FieldTable::new(FIELDS).expect("our own table"),
            "c.csv",
            list.as_bytes(),
        )
    }

    /// The names of the page, or the complaint.
    #[track_caller]
    fn check(list: &str, want: Result<&[&str], &str>) {
        match (read(list), want) {
            (Ok(selection), Ok(names)) => {
                let got: Vec<&str> = selection.columns.iter().map(|c| c.name.as_str()).collect();
                assert_eq!(got, names);
            }
            (Err(error), Err(want)) => assert_eq!(error.to_string(), want),
            (got, want) => panic!("{got:?}, expected {want:?}"),
        }
    }

    #[test]
    fn comments_and_blank_lines_are_skipped_and_blanks_cut() {
        let list =
            "# Format\n\nDCGM_FI_DEV_DEC_UTIL ,     gauge, Decoder utilization (in %).\r\n#DCGM_FI_X, gauge, x\n";
        check(list, Ok(&["DCGM_FI_DEV_DEC_UTIL"]));
        let selection = read(list).expect("a list");
        assert_eq!(selection.columns[0].help, "Decoder utilization (in %).");
    }

    #[test]
    fn names_of_every_generation_are_shown_as_they_are_written() {
        let list = "dcgm_gpu_temp, gauge, t\nDCGM_FI_DEV_GPU_TEMP, gauge, t\nDCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, t\n";
        check(
            list,
            Ok(&["dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS"]),
        );
    }

    #[test]
    fn the_type_is_taken_as_written() {
        let kinds = |list: &str| {
            read(list)
                .expect("a list")
                .columns
                .iter()
                .map(|c| c.kind)
                .collect::<Vec<_>>()
        };
        let list = "DCGM_FI_PROF_PCIE_TX_BYTES, counter, b\nDCGM_FI_DEV_GPU_TEMP, histogram, t\n";
        assert_eq!(kinds(list), [Kind::Counter, Kind::Unknown]);
        assert_eq!(read("DCGM_FI_DEV_SERIAL, label, s\n").expect("a list").labels.len(), 1);
    }

    #[test]
    fn what_is_not_shown_is_accepted_with_a_remark() {
        let selection = read("DCGM_EXP_XID_ERRORS_COUNT, anything, x\nDCGM_FI_DEV_ECC_SBE_VOL_L1, counter, x\n");
        let remarks = selection.expect("a list").remarks;
        assert_eq!(remarks.len(), 2);
        assert!(
            remarks[1].starts_with("line 2: DCGM_FI_DEV_ECC_SBE_VOL_L1 is not shown: "),
            "{remarks:?}"
        );
    }

    #[test]
    fn what_the_exporter_refuses_is_refused_with_its_line() {
        check(
            "DCGM_FI_DEV_GPU_TEMP, gauge\n",
            Err("c.csv, line 1: expected 3 columns (field, type, help), got 2"),
        );
        check(
            "# c\nDCGM_FI_DEV_GPU_TEMP, gauge, a\nDCGM_FI_DEV_FB_USED, gauge, a, b\n",
            Err("c.csv, line 3: 4 columns where the first line has 3"),
        );
        check(
            "\nDCGM_FI_DEV_GPU_TEM, gauge, t\n",
            Err("c.csv, line 2: DCGM has no field \"DCGM_FI_DEV_GPU_TEM\""),
        );
        check(
            "DCGM_FI_DEV_GPU_TEMP, gage, t\n",
            Err("c.csv, line 1: Prometheus has no type \"gage\""),
        );
        check(
            "DCGM_FI_DEV_GPU_TEMP, gauge, a \"b\" c\n",
            Err("c.csv, line 1: a quote within a value that has none around it"),
        );
        check(
            "DCGM_FI_DEV_GPU_TEMP,gauge,\"abc\n",
            Err("c.csv, line 1: a quote that is never closed"),
        );
        check(
            "\u{feff}DCGM_FI_DEV_GPU_TEMP, gauge, t\n",
            Err("c.csv, line 1: the file begins with a byte order mark, which is no comment"),
        );
    }

    #[test]
    fn a_quoted_help_may_hold_commas_quotes_and_lines() {
        let selection =
            read("DCGM_FI_DEV_GPU_TEMP,gauge,\"a, \"\"b\"\"\nc\"\nDCGM_FI_DEV_FB_USED,gauge,d\n").expect("a list");
        assert_eq!(selection.columns[0].help, "a, \"b\"\nc");
        assert_eq!(selection.columns.len(), 2);
    }

    #[test]
    fn both_generations_stand_on_one_page_and_unrenamed_fields_once() {
        let table = FieldTable::new(FIELDS).expect("our own table");
        let names = |names| {
            let selection = Selection::only_default(&table, names);
            selection.columns.into_iter().map(|c| c.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Names::Dcgm48).len(), 25);
        let new = names(Names::Dcgm49);
        assert_eq!(new.len(), 26, "25, and the memory in all");
        assert!(new.contains(&"DCGM_FI_DEV_FB_CAPACITY_BYTES".to_owned()));
        let both = names(Names::Both);
        assert_eq!(both.len(), 25 + 26 - 3, "three fields were not renamed");
    }
}
