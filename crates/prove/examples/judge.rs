//! Judges rule files against pages: `judge RULES… -- PAGES…`. A short way to look at verdicts.

use prove::{Evidence, Facts, Origin};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let split = args.iter().position(|a| a == "--").unwrap_or(args.len());
    let mut evidence = Evidence::new(Origin::Pages);
    for page in args.iter().skip(split + 1) {
        evidence.add_page(page, &std::fs::read(page)?)?;
    }
    let mut rules = Vec::new();
    for file in &args[..split] {
        rules.extend(prove::rules_of(file, &std::fs::read_to_string(file)?)?);
    }
    for finding in prove::prove(&rules, &evidence, &Facts::shipped()?) {
        println!("{} {} {}", finding.verdict.as_str(), finding.file, finding.alert);
        println!("    {}", finding.expr.split_whitespace().collect::<Vec<_>>().join(" "));
        for reason in &finding.reasons {
            println!("    {}: {} -> {}", reason.code, reason.message, reason.mend);
        }
    }
    for reason in prove::remarks(&rules) {
        println!("{}: {}", reason.code, reason.message);
    }
    Ok(())
}
