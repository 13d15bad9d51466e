//! The text form in which Prometheus reads figures (version 0.0.4): families of samples, each with its help and type.

use std::fmt::Write;

/// What a family counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only goes up, until the process ends.
    Counter,
    Gauge,
    Histogram,
}

/// A page of families, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Page(String);

/// Measured times of one kind: how many took at most so long.
#[derive(Debug, Clone, PartialEq)]
pub struct Times {
    /// Upper bounds in seconds, ascending.
    pub bounds: &'static [f64],
    /// One for each bound and one for what took longer; not summed up.
    pub counts: Vec<u64>,
    pub sum_s: f64,
}

impl Times {
    pub fn new(bounds: &'static [f64]) -> Self {
        Times { bounds, counts: vec![0; bounds.len() + 1], sum_s: 0.0 }
    }

    pub fn add(&mut self, seconds: f64) {
        self.counts[slot(self.bounds, seconds)] += 1;
        self.sum_s += seconds;
    }
}

/// Which of `bounds` a time belongs under; the last one beyond them where it took longer.
pub fn slot(bounds: &[f64], seconds: f64) -> usize {
    bounds.iter().position(|bound| seconds <= *bound).unwrap_or(bounds.len())
}

impl Page {
    /// Begins a family. Its samples follow.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let label = |(key, value): &(&str, &str)| {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                format!("{key}=\"{value}\"")
            };
            write!(self.0, "{{{}}}", labels.iter().map(label).collect::<Vec<_>>().join(",")).ok();
        }
        match value {
            f64::INFINITY => self.0.push_str(" +Inf\n"),
            value => drop(writeln!(self.0, " {value}")),
        }
    }

    /// All samples of a histogram.
    pub fn times(&mut self, name: &str, labels: &[(&str, &str)], times: &Times) {
        let bucket = format!("{name}_bucket");
        let mut sum = 0;
        let bounds = times.bounds.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&times.counts) {
            sum += count;
            let with: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            self.sample(&bucket, &with, sum as f64);
        }
        self.sample(&format!("{name}_sum"), labels, times.sum_s);
        self.sample(&format!("{name}_count"), labels, sum as f64);
    }

    pub fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_as_the_text_format_has_it_whatever_a_label_says() {
        let mut page = Page::default();
        page.family("muster_x", Kind::Gauge, "two\nlines \\");
        page.sample("muster_x", &[("site", "a\"b\\c\nd"), ("n", "")], 1.5);
        page.sample("muster_x", &[], f64::INFINITY);
        let mut times = Times::new(&[0.1, 1.0]);
        for seconds in [0.05, 0.1, 0.5, 7.0] {
            times.add(seconds);
        }
        page.family("muster_t", Kind::Histogram, "times");
        page.times("muster_t", &[("phase", "bmc")], &times);
        assert_eq!(
            page.text(),
            "# HELP muster_x two\\nlines \\\\\n# TYPE muster_x gauge\n\
             muster_x{site=\"a\\\"b\\\\c\\nd\",n=\"\"} 1.5\nmuster_x +Inf\n\
             # HELP muster_t times\n# TYPE muster_t histogram\n\
             muster_t_bucket{phase=\"bmc\",le=\"0.1\"} 2\nmuster_t_bucket{phase=\"bmc\",le=\"1\"} 3\n\
             muster_t_bucket{phase=\"bmc\",le=\"+Inf\"} 4\nmuster_t_sum{phase=\"bmc\"} 7.65\nmuster_t_count{phase=\"bmc\"} 4\n"
        );
    }
}
