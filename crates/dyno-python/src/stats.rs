//! Python interface of statistics on a column of Parquet files, or on arrays: one request, one answer.
//!
//! Numbers are returned as they are; a missing number (no value, no interval) is None. Names of groups and blocks are
//! in natural order: as numbers if all are numbers, else as text.

use std::path::PathBuf;

use dyno_evidence::{ColumnError, NumberColumn, Numbers, read_numbers};
use dyno_stats::agreement::{kendall, spearman, spearman_orders as orders_of};
use dyno_stats::comoments::Comoments;
use dyno_stats::describe::{self, Description, Piece, Request};
use dyno_stats::fit::{Fit, FitError, least_squares};
use dyno_stats::keys::Ordered;
use dyno_stats::signed::bounds_of;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::errors::raise;
use crate::values::{from_python, to_python};

/// Largest number of pairs of group and block.
const CELLS_MAX: usize = 1 << 20;

/// Request from Python, parsed.
struct Question {
    sets: Vec<(String, Vec<PathBuf>)>,
    value: String,
    group: Option<String>,
    block: Option<String>,
    first: Option<String>,
    groups: Vec<String>,
    blocks: Vec<String>,
    quantiles: Vec<f64>,
    level: f64,
    longest: usize,
    fences: bool,
}

impl Question {
    fn of(asked: &Value) -> Self {
        let word = |name: &str| asked[name].as_str().map(str::to_owned);
        let words = |list: &Value| -> Vec<String> {
            list.as_array().into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
        };
        let sets = asked["sets"].as_array().into_iter().flatten().map(|set| {
            let files = words(&set["files"]).into_iter().map(PathBuf::from).collect();
            (set["label"].as_str().unwrap_or_default().to_owned(), files)
        });
        Self {
            sets: sets.collect(),
            value: word("value").unwrap_or_default(),
            group: word("group"),
            block: word("block"),
            first: word("first"),
            groups: words(&asked["groups"]),
            blocks: words(&asked["blocks"]),
            quantiles: asked["quantiles"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect(),
            level: asked["level"].as_f64().unwrap_or(0.95),
            longest: asked["longest"].as_u64().unwrap_or(0) as usize,
            fences: asked["fences"].as_bool().unwrap_or(false),
        }
    }

    fn request(&self, groups: usize, blocks: usize) -> Request {
        Request {
            groups,
            blocks,
            quantiles: self.quantiles.clone(),
            level: self.level,
            longest: self.longest,
            fences: self.fences,
        }
    }
}

/// Returns the names in natural order, with `first` at the front, and the new index of each old one.
fn in_order(names: &[String], first: Option<&str>) -> (Vec<String>, Vec<u32>) {
    let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    match &numbers {
        Some(numbers) => order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b])),
        None => order.sort_by(|&a, &b| names[a].cmp(&names[b])),
    }
    if let Some(place) = order.iter().position(|&at| Some(names[at].as_str()) == first) {
        order[..=place].rotate_right(1);
    }
    let mut new = vec![0; names.len()];
    for (to, &from) in order.iter().enumerate() {
        new[from] = to as u32;
    }
    (order.iter().map(|&at| names[at].clone()).collect(), new)
}

/// Column in the form that the kernels need, with the names of its groups and blocks.
struct Prepared<T> {
    pieces: Vec<Piece<T>>,
    groups: Vec<String>,
    blocks: Vec<String>,
    missing: Vec<u64>,
}

fn prepare<T>(column: NumberColumn, q: &Question, take: impl Fn(Numbers) -> Vec<T>) -> Prepared<T> {
    let by_set = q.group.is_none();
    let mut set_of = Vec::new();
    for (number, (_, files)) in q.sets.iter().enumerate() {
        set_of.resize(set_of.len() + files.len(), number as u32);
    }
    let (groups, new_groups) = if by_set {
        let labels = q.sets.iter().map(|set| set.0.clone()).collect::<Vec<_>>();
        let same = (0..labels.len() as u32).collect();
        (labels, same)
    } else {
        in_order(&column.groups, q.first.as_deref())
    };
    let (blocks, new_blocks) = in_order(&column.blocks, None);
    let mut missing = vec![0; groups.len()];
    let renamed = |old: Vec<u32>, new: &[u32]| old.into_iter().map(|n| new[n as usize]).collect();
    let pieces = column
        .pieces
        .into_iter()
        .map(|piece| {
            let set = set_of[piece.file as usize];
            for &group in &piece.missing {
                missing[if by_set { set } else { new_groups[group as usize] } as usize] += 1;
            }
            let values = take(piece.numbers);
            let groups = match (by_set, q.sets.len()) {
                (true, 0 | 1) => Vec::new(),
                (true, _) => vec![set; values.len()],
                (false, _) => renamed(piece.groups, &new_groups),
            };
            Piece {
                groups,
                values,
                blocks: renamed(piece.blocks, &new_blocks),
                file: piece.file,
                first_row: piece.first_row,
                rows: piece.rows,
            }
        })
        .collect();
    Prepared { pieces, groups, blocks, missing }
}

fn answer<T: Ordered>(made: &Prepared<T>, q: &Question, integer: bool) -> Result<Value, String> {
    let (groups, blocks) = (made.groups.len().max(1), made.blocks.len());
    if groups.saturating_mul(blocks.max(1)) > CELLS_MAX {
        return Err(format!("{groups} groups in {blocks} blocks are too many"));
    }
    let found = describe::describe(&made.pieces, &q.request(groups, blocks));
    Ok(written(&found, made, integer))
}

/// Returns a value of the column as JSON; infinities, which JSON cannot represent, become the texts `inf` and `-inf`.
fn number(value: f64) -> Value {
    if value.is_infinite() { json!(if value > 0.0 { "inf" } else { "-inf" }) } else { json!(value) }
}

fn written<T>(found: &Description, made: &Prepared<T>, integer: bool) -> Value {
    let groups = found.groups.iter().enumerate().map(|(at, group)| {
        let histogram = group.histogram.iter().map(|&(bucket, count)| {
            let (low, high) = bounds_of(bucket);
            json!([low, high, count])
        });
        json!({
            "name": made.groups.get(at).cloned().unwrap_or_default(),
            "n": group.moments.count,
            "missing": made.missing.get(at).copied().unwrap_or(0),
            "offset": group.moments.mean, "m2": group.moments.m2,
            "min": number(group.min), "max": number(group.max),
            "quantiles": group.quantiles.iter()
                .map(|q| json!([q.q, number(q.value), number(q.low), number(q.high)])).collect::<Vec<_>>(),
            "histogram": histogram.collect::<Vec<_>>(),
            "fences": group.fences.as_ref().map(|f| json!({
                "ends": f.ends, "beyond": f.beyond, "mad": f.mad,
                "modified_z": f.modified_z, "six_sigma": f.six_sigma,
            })),
        })
    });
    json!({
        "integer": integer, "shift": found.shift,
        "groups": groups.collect::<Vec<_>>(),
        // Integers beyond 2^64 are returned as text.
        "pair": found.pair.map(|(u, ks)| json!({
            "u_doubled": u.u_doubled.to_string(), "tie_term": u.tie_term.to_string(),
            "above": ks.above.to_string(), "below": ks.below.to_string(), "tied": found.tied,
        })),
        "rank_sums": found.rank_sums.as_ref().map(|(sums, ties)| json!({
            "doubled": sums.iter().map(u128::to_string).collect::<Vec<_>>(),
            "tie_term": ties.to_string(),
        })),
        "blocks": found.blocks.iter().map(|b| json!({
            "group": b.group, "block": made.blocks[b.block as usize],
            "n": b.moments.count, "offset": b.moments.mean, "m2": b.moments.m2,
            "quantiles": b.quantiles,
        })).collect::<Vec<_>>(),
        "longest": found.longest.iter()
            .map(|l| json!([number(l.value), l.group, l.file, l.row])).collect::<Vec<_>>(),
    })
}

/// Parses a request from Python.
fn asked(py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<Question> {
    let read = from_python::<Value>(request).map_err(|error| raise(py, "StatsError", &error.to_string()))?;
    Ok(Question::of(&read))
}

/// Converts an answer to Python values.
fn made<'py>(py: Python<'py>, answer: &Value) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, answer).map_err(|error| raise(py, "StatsError", &error.to_string()))
}

/// Describe a column of Parquet files; return a dict, or {"unsupported": reason} if another reader is needed.
///
/// `request` has sets [{label, files}], value, group, block, first (the group to list first), quantiles, level,
/// longest, fences. Without `group` each set is a group.
///
/// Raises:
///     EvidenceError: A file cannot be read.
///     StatsError: The request is invalid, or has too many groups and blocks.
#[pyfunction]
pub(crate) fn stats_parquet<'py>(py: Python<'py>, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let q = asked(py, request)?;
    let work = || -> Result<Value, Result<ColumnError, String>> {
        let files: Vec<PathBuf> = q.sets.iter().flat_map(|set| set.1.clone()).collect();
        let column = read_numbers(&files, &q.value, q.group.as_deref(), q.block.as_deref()).map_err(Ok)?;
        let floats = column.pieces.iter().any(|p| matches!(&p.numbers, Numbers::Floats(values) if !values.is_empty()));
        if floats {
            let take = |numbers| match numbers {
                Numbers::Floats(values) => values,
                Numbers::Integers(values) => values.into_iter().map(|v| v as f64).collect(),
            };
            answer(&prepare(column, &q, take), &q, false).map_err(Err)
        } else {
            let take = |numbers| match numbers {
                Numbers::Integers(values) => values,
                Numbers::Floats(_) => Vec::new(),
            };
            answer(&prepare(column, &q, take), &q, true).map_err(Err)
        }
    };
    match py.detach(work) {
        Ok(found) => made(py, &found),
        Err(Ok(error @ ColumnError::Unsupported { .. })) => made(py, &json!({ "unsupported": error.to_string() })),
        Err(Ok(error)) => Err(raise(py, "EvidenceError", &error.to_string())),
        Err(Err(reason)) => Err(raise(py, "StatsError", &reason)),
    }
}

/// Copies an array of one number type.
fn numbers<T: pyo3::buffer::Element>(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Vec<T>> {
    PyBuffer::<T>::get(array)?.to_vec(py)
}

/// Describe arrays; NaN values are left out and counted.
///
/// Args:
///     values: int64 or float64 values.
///     groups: uint32 indexes into `groups` of the request.
///     blocks: uint32 indexes into `blocks` of the request.
///     request: As for `stats_parquet`.
#[pyfunction]
#[pyo3(signature = (values, groups, blocks, request))]
pub(crate) fn stats_arrays<'py>(
    py: Python<'py>,
    values: &Bound<'_, PyAny>,
    groups: Option<&Bound<'_, PyAny>>,
    blocks: Option<&Bound<'_, PyAny>>,
    request: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let q = asked(py, request)?;
    let labels =
        |array: Option<&Bound<'_, PyAny>>| array.map_or_else(|| Ok(Vec::new()), |array| numbers::<u32>(py, array));
    let (groups, blocks) = (labels(groups)?, labels(blocks)?);
    let found = if let Ok(integers) = numbers::<i64>(py, values) {
        py.detach(|| of_arrays(integers, groups, blocks, &q, true))
    } else {
        let floats = numbers::<f64>(py, values)?;
        py.detach(|| of_arrays(floats, groups, blocks, &q, false))
    };
    made(py, &found.map_err(|reason| raise(py, "StatsError", &reason))?)
}

fn of_arrays<T: Ordered>(
    values: Vec<T>,
    groups: Vec<u32>,
    blocks: Vec<u32>,
    q: &Question,
    integer: bool,
) -> Result<Value, String> {
    const PIECE: usize = 1 << 20;
    let fits = |labels: &[u32], names: &[String]| {
        (labels.is_empty() || labels.len() == values.len()) && labels.iter().all(|&n| (n as usize) < names.len())
    };
    if !fits(&groups, &q.groups) || !fits(&blocks, &q.blocks) {
        return Err("the columns differ in length".to_owned());
    }
    let mut missing = vec![0u64; q.groups.len().max(1)];
    let pieces = (0..values.len())
        .step_by(PIECE)
        .map(|start| {
            let end = (start + PIECE).min(values.len());
            let kept: Vec<usize> = (start..end).filter(|&i| values[i].is_value()).collect();
            let whole = kept.len() == end - start;
            if !whole {
                for i in (start..end).filter(|&i| !values[i].is_value()) {
                    missing[groups.get(i).map_or(0, |&g| g as usize)] += 1;
                }
            }
            let label = |labels: &[u32]| {
                if labels.is_empty() { Vec::new() } else { kept.iter().map(|&i| labels[i]).collect() }
            };
            Piece {
                groups: label(&groups),
                blocks: label(&blocks),
                file: 0,
                first_row: start as u64,
                rows: if whole { Vec::new() } else { kept.iter().map(|&i| (i - start) as u32).collect() },
                values: kept.iter().map(|&i| values[i]).collect(),
            }
        })
        .collect();
    let names = if q.groups.is_empty() { vec![String::new()] } else { q.groups.clone() };
    let made = Prepared { pieces, groups: names, blocks: q.blocks.clone(), missing };
    answer(&made, q, integer)
}

/// Return the correlation of two float64 arrays of equal length without NaN.
///
/// The dict has n, means, sums of squares and products, Pearson's r, Spearman's rho with the sum of squared rank
/// differences and whether there are ties, and, with `with_tau`, Kendall's score, tau-b and the sizes of tied groups.
#[pyfunction]
pub(crate) fn stats_pairs<'py>(
    py: Python<'py>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    with_tau: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (x, y) = (numbers::<f64>(py, x)?, numbers::<f64>(py, y)?);
    if x.len() != y.len() {
        return Err(raise(py, "StatsError", "the columns differ in length"));
    }
    let found = py.detach(|| {
        let moments = Comoments::of(&x, &y);
        let rho = spearman(&x, &y);
        let tau = with_tau.then(|| kendall(&x, &y));
        json!({
            "n": moments.x.count, "mean_x": moments.x.mean, "mean_y": moments.y.mean,
            "xx": moments.x.m2, "yy": moments.y.m2, "xy": moments.xy,
            "r": moments.correlation(), "rho": rho.rho, "s": rho.s, "ties": rho.ties,
            "tau": tau.map(|t| json!({
                "score": t.score.to_string(), "tau": t.tau,
                "ties_x": t.ties_x, "ties_y": t.ties_y,
            })),
        })
    });
    made(py, &found)
}

/// Return how many of the n! orders of n pairs give each value of half the sum of squared rank differences; n is at
/// most 9.
#[pyfunction]
pub(crate) fn spearman_orders(py: Python<'_>, n: usize) -> PyResult<Vec<u64>> {
    orders_of(n).ok_or_else(|| raise(py, "StatsError", "exact orders are there for 9 pairs at most"))
}

/// Fit float64 arrays without NaN by least squares; with `degree` above 1 the columns are powers of the only x.
///
/// Returns:
///     A dict of coefficients, errors, n, residual and explained sums of squares; residuals as little-endian float64.
///
/// Raises:
///     StatsError: There are too few rows, or the columns are dependent or differ in length.
#[pyfunction]
pub(crate) fn stats_fit<'py>(
    py: Python<'py>,
    y: &Bound<'_, PyAny>,
    xs: Vec<Bound<'_, PyAny>>,
    intercept: bool,
    degree: usize,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyBytes>)> {
    let y = numbers::<f64>(py, y)?;
    let columns: Vec<Vec<f64>> = xs.iter().map(|x| numbers::<f64>(py, x)).collect::<PyResult<_>>()?;
    let found = py.detach(|| {
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        least_squares(&y, &columns, intercept, degree)
    });
    let fit: Fit = found.map_err(|error| {
        let reason = match error {
            FitError::TooFew => "fewer rows than coefficients".to_owned(),
            FitError::Dependent(x) => {
                format!("x{} is constant or a linear combination of the columns before it", x + 1)
            }
            FitError::Shape => "the columns differ in length".to_owned(),
        };
        raise(py, "StatsError", &reason)
    })?;
    let found = json!({
        "coefficients": fit.coefficients, "errors": fit.errors, "n": fit.count,
        "residual_squares": fit.residual_squares, "explained_squares": fit.explained_squares,
    });
    let bytes: Vec<u8> = fit.residuals.iter().flat_map(|v| v.to_le_bytes()).collect();
    Ok((made(py, &found)?, PyBytes::new(py, &bytes)))
}
