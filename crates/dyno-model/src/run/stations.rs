//! Statistics of queueing stations as metrics.

use std::path::Path;

use dyno_evidence::{EvidenceError, Metrics, write_metrics};

use crate::cell::Rack;
use crate::cell::metrics::MetricKind;
use crate::kernel::StationReport;

/// Metrics of a block.
pub struct Stations {
    block: u32,
    arms: Vec<String>,
    metrics: Metrics,
}

/// One metric reading.
pub struct Reading<'a> {
    pub source: &'a str,
    pub object_type: &'a str,
    pub object: &'a str,
    pub metric: &'a str,
    pub value: f64,
    pub unit: &'a str,
    pub kind: &'a str,
}

impl Stations {
    pub fn new(block: u32, arms: &[String]) -> Self {
        Self { block, arms: arms.to_vec(), metrics: Metrics::default() }
    }

    /// Adds a reading of an arm.
    pub fn push(&mut self, arm: u16, at_ns: i64, reading: &Reading<'_>) {
        let metrics = &mut self.metrics;
        metrics.arm.push(self.arms[usize::from(arm)].clone());
        metrics.block.push(self.block);
        metrics.source.push(reading.source.into());
        metrics.object_type.push(reading.object_type.into());
        metrics.object.push(reading.object.into());
        metrics.metric.push(reading.metric.into());
        metrics.at_ns.push(at_ns);
        metrics.value.push(reading.value);
        metrics.unit.push(reading.unit.into());
        metrics.kind.push(reading.kind.into());
    }

    /// Adds the statistics of a station since the end of the warm-up.
    pub fn station(&mut self, arm: u16, at_ns: i64, report: &StationReport) {
        let gauges = [
            ("utilisation", report.utilisation, "ratio", "gauge"),
            ("present", report.present_mean, "count", "gauge"),
            ("queue", report.queue_mean, "count", "gauge"),
            ("present_max", report.present_max as f64, "count", "gauge"),
            ("servers", report.servers as f64, "count", "gauge"),
            ("arrivals", report.arrivals as f64, "count", "counter"),
            ("completions", report.departures as f64, "count", "counter"),
            ("sojourn", report.sojourn_ns_mean, "ns", "gauge"),
            ("wait", report.wait_ns_mean, "ns", "gauge"),
            ("wait_max", report.wait_ns_max as f64, "ns", "gauge"),
            ("little", f64::from(u8::from(!report.little)), "count", "gauge"),
        ];
        for (metric, value, unit, kind) in gauges {
            let object = report.name.as_str();
            let (source, object_type) = ("model", "station");
            let reading = Reading { source, object_type, object, metric, value, unit, kind };
            self.push(arm, at_ns, &reading);
        }
    }

    /// Adds the number of transactions of a database since the end of the warm-up.
    pub fn database(&mut self, arm: u16, at_ns: i64, name: &str, transactions: u64) {
        let reading = Reading {
            source: "model",
            object_type: "database",
            object: name,
            metric: "transactions",
            value: transactions as f64,
            unit: "count",
            kind: "counter",
        };
        self.push(arm, at_ns, &reading);
    }

    /// Adds the metrics of cells under Oracle's names.
    pub fn cells(&mut self, arm: u16, at_ns: i64, rack: &Rack) {
        for metric in rack.metrics() {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Rate => "rate",
            };
            let source = format!("cell:{}", metric.cell);
            let reading = Reading {
                source: &source,
                object_type: metric.object_type,
                object: &metric.object,
                metric: &metric.name,
                value: metric.value,
                unit: metric.unit,
                kind,
            };
            self.push(arm, at_ns, &reading);
        }
    }

    /// Writes the metrics as a part of the evidence; returns the number of rows.
    ///
    /// # Errors
    /// A part cannot be written.
    pub fn write(&self, dir: &Path, name: &str) -> Result<u64, EvidenceError> {
        write_metrics(dir, name, &self.metrics)
    }
}
