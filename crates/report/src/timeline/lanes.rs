//! Tracks on which no two slices overlap.

/// Puts each of `intervals` (begin, end), which are sorted by begin, on the first lane that is
/// free. Intervals that touch share a lane. Returns the lane of each.
pub(super) fn lanes(intervals: &[(u64, u64)]) -> Vec<usize> {
    let mut free_at: Vec<u64> = Vec::new();
    let place = |(begin, end): &(u64, u64)| {
        let lane = free_at.iter().position(|free| free <= begin).unwrap_or(free_at.len());
        if lane == free_at.len() {
            free_at.push(0);
        }
        free_at[lane] = *end;
        lane
    };
    intervals.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_intervals_share_a_lane_and_overlapping_ones_do_not() {
        assert_eq!(lanes(&[(0, 5), (5, 9)]), [0, 0]);
        assert_eq!(lanes(&[(0, 6), (5, 9)]), [0, 1]);
        assert_eq!(lanes(&[(0, 9), (1, 3), (2, 4), (3, 5), (9, 10)]), [0, 1, 2, 1, 0]);
        assert!(lanes(&[]).is_empty());
    }
}
