//! Description of a column of numbers in groups: the content of `dbdyno stats`.
//!
//! The values of a group are sorted once; quantiles, their intervals, ranks, the histogram, fences and the longest
//! values all use that order. Groups are processed in parallel. Memory: about 24 bytes per value while it runs.

mod column;
mod group;

use rayon::prelude::*;

pub use self::column::{
    BlockDescription, Description, Fences, GroupDescription, Longest, Piece, QuantileValue, Request, SMALL_PAIR,
};
use self::group::{describe_sorted, moments, quantile, value};
use crate::keys::{Ordered, sort_keys};
use crate::ranks::{KolmogorovSmirnov, MannWhitney};

/// Describes a column.
pub fn describe<T: Ordered>(pieces: &[Piece<T>], request: &Request) -> Description {
    let mut sorted = partition(pieces, request.groups, Piece::group);
    sorted.par_iter_mut().for_each(sort_keys);
    let shift = shift::<T>(&sorted);
    let blocks = if request.blocks == 0 { Vec::new() } else { in_blocks(pieces, request, shift) };
    let (groups, (pair, longest)) = rayon::join(
        || sorted.par_iter().map(|keys| describe_sorted::<T>(keys, request, shift)).collect(),
        || rayon::join(|| pair(&sorted), || longest(pieces, &sorted, request.longest)),
    );
    Description {
        shift: shift.float(),
        groups,
        pair,
        tied: tied(&sorted),
        rank_sums: rank_sums(&sorted),
        blocks,
        longest,
    }
}

fn shift<T: Ordered>(sorted: &[Vec<u64>]) -> T {
    let low = sorted.iter().filter_map(|keys| keys.first()).min();
    let high = sorted.iter().filter_map(|keys| keys.last()).max();
    let zero = T::default();
    let (Some(&low), Some(&high)) = (low, high) else { return zero };
    let (a, b) = (value::<T>(low), value::<T>(high));
    let near = (a > 0.0 && b <= 2.0 * a) || (b < 0.0 && a >= 2.0 * b);
    if near { T::of_key(low) } else { zero }
}

/// Largest number of lists (one per part and piece); above it, sorting by part is cheaper.
const LISTS_MAX: usize = 1 << 20;

/// Returns the keys of the values, divided into `parts` lists; `part` returns the number of the list for a value of a
/// piece.
fn partition<T: Ordered>(
    pieces: &[Piece<T>],
    parts: usize,
    part: impl Fn(&Piece<T>, usize) -> usize + Sync,
) -> Vec<Vec<u64>> {
    if parts.saturating_mul(pieces.len()) > LISTS_MAX {
        return partition_many(pieces, parts, part);
    }
    let split = |piece: &Piece<T>| {
        let mut split = vec![Vec::new(); parts];
        for (at, value) in piece.values.iter().enumerate() {
            split[part(piece, at)].push(value.key());
        }
        split
    };
    let by_piece: Vec<Vec<Vec<u64>>> = pieces.par_iter().map(split).collect();
    (0..parts)
        .into_par_iter()
        .map(|number| {
            let total = by_piece.iter().map(|split| split[number].len()).sum();
            let mut all = Vec::with_capacity(total);
            for split in &by_piece {
                all.extend_from_slice(&split[number]);
            }
            all
        })
        .collect()
}

/// Returns the same as [`partition`] for many parts: memory is proportional to the number of values, not to parts times
/// pieces.
fn partition_many<T: Ordered>(
    pieces: &[Piece<T>],
    parts: usize,
    part: impl Fn(&Piece<T>, usize) -> usize + Sync,
) -> Vec<Vec<u64>> {
    let part = &part;
    let mut all: Vec<(u32, u64)> = pieces
        .par_iter()
        .flat_map_iter(|piece| {
            let values = piece.values.iter().enumerate();
            values.map(move |(at, value)| (part(piece, at) as u32, value.key()))
        })
        .collect();
    all.par_sort_unstable();
    let mut made = vec![Vec::new(); parts];
    for run in all.chunk_by(|a, b| a.0 == b.0) {
        made[run[0].0 as usize] = run.iter().map(|entry| entry.1).collect();
    }
    made
}

fn pair(sorted: &[Vec<u64>]) -> Option<(MannWhitney, KolmogorovSmirnov)> {
    let [a, b] = sorted else { return None };
    if a.is_empty() || b.is_empty() {
        return None;
    }
    Some(rayon::join(|| MannWhitney::of_sorted(b, a), || KolmogorovSmirnov::of_sorted(b, a)))
}

fn tied(sorted: &[Vec<u64>]) -> Vec<u64> {
    let [a, b] = sorted else { return Vec::new() };
    if a.len().saturating_mul(b.len()) > SMALL_PAIR {
        return Vec::new();
    }
    let mut both = [a.as_slice(), b].concat();
    both.sort_unstable();
    both.chunk_by(|x, y| x == y).map(|run| run.len() as u64).collect()
}

fn rank_sums(sorted: &[Vec<u64>]) -> Option<(Vec<u128>, u128)> {
    if sorted.len() < 3 {
        return None;
    }
    let mut all: Vec<(u64, u32)> =
        sorted.iter().enumerate().flat_map(|(group, keys)| keys.iter().map(move |&key| (key, group as u32))).collect();
    all.par_sort_unstable();
    let (mut sums, mut ties, mut before) = (vec![0u128; sorted.len()], 0u128, 0u128);
    for run in all.chunk_by(|a, b| a.0 == b.0) {
        let n = run.len() as u128;
        for &(_, group) in run {
            sums[group as usize] += 2 * before + n + 1;
        }
        ties += n * n * n - n;
        before += n;
    }
    Some((sums, ties))
}

fn in_blocks<T: Ordered>(pieces: &[Piece<T>], request: &Request, shift: T) -> Vec<BlockDescription> {
    let blocks = request.blocks;
    let cell = |piece: &Piece<T>, at: usize| piece.group(at) * blocks + piece.blocks[at] as usize;
    let mut cells = partition(pieces, request.groups * blocks, cell);
    let described = cells.par_iter_mut().enumerate().filter(|(_, keys)| !keys.is_empty());
    described
        .map(|(cell, keys)| {
            sort_keys(keys);
            BlockDescription {
                group: (cell / blocks) as u32,
                block: (cell % blocks) as u32,
                moments: moments(keys, shift),
                quantiles: request.quantiles.iter().map(|&q| quantile::<T>(keys, q)).collect(),
            }
        })
        .collect()
}

/// Returns the longest values over all groups: the sorted keys give the smallest key to list, then one pass over the
/// pieces finds the rows.
fn longest<T: Ordered>(pieces: &[Piece<T>], sorted: &[Vec<u64>], count: usize) -> Vec<Longest> {
    if count == 0 {
        return Vec::new();
    }
    let mut tails: Vec<u64> =
        sorted.iter().flat_map(|keys| keys[keys.len().saturating_sub(count)..].iter().copied()).collect();
    tails.sort_unstable();
    let Some(&least) = tails.get(tails.len().saturating_sub(count)) else { return Vec::new() };
    let mut found: Vec<(u64, u32, u64, u32)> = pieces
        .par_iter()
        .flat_map_iter(|piece| {
            piece.values.iter().enumerate().filter_map(move |(at, value)| {
                let key = value.key();
                (key >= least).then(|| (key, piece.file, piece.row(at), piece.group(at) as u32))
            })
        })
        .collect();
    found.par_sort_unstable_by(|a, b| b.cmp(a));
    found.truncate(count);
    found.into_iter().map(|(key, file, row, group)| Longest { value: value::<T>(key), group, file, row }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(groups: usize, blocks: usize) -> Request {
        let quantiles = vec![0.0, 0.25, 0.5, 0.9, 1.0];
        Request { groups, blocks, quantiles, level: 0.95, longest: 3, fences: true }
    }

    fn piece<T>(values: Vec<T>, groups: Vec<u32>) -> Piece<T> {
        Piece { values, groups, blocks: Vec::new(), file: 0, first_row: 0, rows: Vec::new() }
    }

    /// R: summary(c(-3, 1, 4, 1.5)) gives -3.000 0.000 1.250 0.875 2.125 4.000.
    #[test]
    fn floats_of_both_signs() {
        let d = describe(&[piece(vec![-3.0, 1.0, 4.0, 1.5], vec![])], &request(1, 0));
        let g = &d.groups[0];
        assert_eq!((g.min, g.max, g.moments.mean), (-3.0, 4.0, 0.875));
        let q: Vec<f64> = g.quantiles.iter().map(|q| q.value).collect();
        assert_eq!(&q[..3], [-3.0, 0.0, 1.25]);
        assert_eq!(d.pair, None);
    }

    #[test]
    fn the_longest_are_found_again_in_file_and_row() {
        let mut second = piece(vec![9i64, 7], vec![1, 0]);
        (second.file, second.first_row, second.rows) = (1, 100, vec![0, 5]);
        let d = describe(&[piece(vec![5i64, 7, 2], vec![0, 1, 0]), second], &request(2, 0));
        let places: Vec<_> = d.longest.iter().map(|l| (l.value, l.group, l.file, l.row)).collect();
        assert_eq!(places, [(9.0, 1, 1, 100), (7.0, 0, 1, 105), (7.0, 1, 0, 1)]);
    }

    #[test]
    fn many_parts_are_divided_like_few() {
        let pieces: Vec<Piece<i64>> =
            (0..4).map(|i| piece((0..50).map(|v| v * 7 % 31 + i).collect(), vec![])).collect();
        let part = |piece: &Piece<i64>, at: usize| (piece.values[at] % 5) as usize;
        let (mut few, many) = (partition(&pieces, 6, part), partition_many(&pieces, 6, part));
        for keys in &mut few {
            keys.sort_unstable();
        }
        assert_eq!(few, many);
    }

    #[test]
    fn nothing_is_described_as_nothing() {
        let d = describe::<f64>(&[], &request(2, 0));
        assert_eq!(d.groups.len(), 2);
        assert!(d.groups[0].min.is_nan() && d.pair.is_none() && d.longest.is_empty());
    }

    proptest! {
        /// However the values are cut into pieces, the description is the same.
        #[test]
        fn any_split_gives_the_description_of_the_whole(
            rows in prop::collection::vec((-50i64..50, 0u32..3, 0u32..4), 1..200),
            cut in 0usize..200,
        ) {
            let made = |part: &[(i64, u32, u32)], first_row: usize| Piece {
                values: part.iter().map(|r| r.0).collect(),
                groups: part.iter().map(|r| r.1).collect(),
                blocks: part.iter().map(|r| r.2).collect(),
                file: 0, first_row: first_row as u64, rows: Vec::new(),
            };
            let cut = cut.min(rows.len());
            let whole = describe(&[made(&rows, 0)], &request(3, 4));
            let parts = describe(&[made(&rows[..cut], 0), made(&rows[cut..], cut)], &request(3, 4));
            prop_assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
            prop_assert_eq!(whole.blocks.iter().map(|b| b.moments.count).sum::<u64>(), rows.len() as u64);
            let (sums, _) = whole.rank_sums.unwrap();
            prop_assert_eq!(sums.iter().sum::<u128>(), (rows.len() * (rows.len() + 1)) as u128);
        }
    }
}
