//! Writes of one turn that lie side by side: they are one for the system, and for a twin.

use scalio::Extent;

/// Sectors that are written at once: 1 MiB. One page may be longer.
const ROW_SECTORS_MAX: u32 = 2_048;

/// Joins writes to rows without gaps, in the order of their sectors.
pub fn joined<T>(mut writes: Vec<(Extent, T)>) -> Vec<(Extent, Vec<T>)> {
    writes.sort_by_key(|(extent, _)| extent.sector);
    let mut rows: Vec<(Extent, Vec<T>)> = Vec::new();
    for (next, write) in writes {
        match rows.last_mut() {
            Some((row, all))
                if row.sector + u64::from(row.sectors) == next.sector
                    && row.sectors.saturating_add(next.sectors) <= ROW_SECTORS_MAX =>
            {
                row.sectors += next.sectors;
                all.push(write);
            }
            _ => rows.push((next, vec![write])),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First sector, sectors and the first sectors of the writes of each row.
    fn rows(writes: &[(u64, u32)]) -> Vec<(u64, u32, Vec<u64>)> {
        let writes = writes.iter().map(|(sector, sectors)| (Extent { sector: *sector, sectors: *sectors }, *sector));
        let rows = joined(writes.collect());
        rows.into_iter().map(|(row, all)| (row.sector, row.sectors, all)).collect()
    }

    #[test]
    fn writes_side_by_side_are_one_up_to_a_mebibyte() {
        assert_eq!(rows(&[(3, 1), (0, 2), (2, 1)]), [(0, 4, vec![0, 2, 3])]);
        assert_eq!(rows(&[(0, 2), (3, 1)]), [(0, 2, vec![0]), (3, 1, vec![3])], "a gap is not written");
        assert_eq!(rows(&[(0, 2_000), (2_000, 48)]), [(0, 2_048, vec![0, 2_000])]);
        assert_eq!(rows(&[(0, 2_000), (2_000, 49)]), [(0, 2_000, vec![0]), (2_000, 49, vec![2_000])]);
        assert_eq!(rows(&[(0, 5_000)]), [(0, 5_000, vec![0])]);
        assert_eq!(rows(&[]), []);
    }
}
