//! Tests that docs/reference/series.md agrees with the declarations, and that samples come back as
//! they were written.

use crate::support::{Memory, agrees_with_reference, provenance};
use base::Time;
use proptest::prelude::*;
use record::{ParquetWriter, Place, Series, SeriesPlace, SeriesRow, read_series};

#[test]
fn the_reference_has_every_series() {
    agrees_with_reference("series.md", &record::series_page(), "series_page");
}

fn any_sample() -> impl Strategy<Value = SeriesRow> {
    let place = prop_oneof![
        Just(SeriesPlace::Total),
        Just(SeriesPlace::Max),
        Just(SeriesPlace::Min),
        any::<u32>().prop_map(|index| SeriesPlace::At(Place::Port(index))),
        any::<u32>().prop_map(|index| SeriesPlace::At(Place::Drive(index))),
    ];
    let metric = prop::sample::select(Series::ALL.to_vec());
    let parts = (any::<u64>(), any::<u32>(), metric, place, 0.0..1e18);
    parts.prop_map(|(at, day, metric, place, value)| SeriesRow { at: Time::ps(at), day, metric, place, value })
}

proptest! {
    #[test]
    fn the_samples_that_are_read_are_the_samples_that_were_written(
        samples in prop::collection::vec(any_sample(), 0..300),
        rows_per_part in 1usize..200,
    ) {
        let mut writer = ParquetWriter::of_series(Memory::new(), &provenance()).with_rows_per_part(rows_per_part);
        samples.chunks(7).for_each(|sample| writer.series(sample).unwrap());
        writer.finish().unwrap();
        let parts = writer.into_parts().parts.into_iter().map(bytes::Bytes::from);
        let read: Vec<_> = parts.flat_map(|part| read_series("part", &part).unwrap().rows).collect();
        prop_assert_eq!(read, samples);
    }
}

#[test]
fn a_value_that_no_run_writes_is_refused() {
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        let row = SeriesRow { at: Time::ZERO, day: 0, metric: Series::FreeBlocks, place: SeriesPlace::Total, value };
        let mut writer = ParquetWriter::of_series(Memory::new(), &provenance());
        writer.series(&[row]).unwrap();
        writer.finish().unwrap();
        let part = bytes::Bytes::from(writer.into_parts().parts.remove(0));
        let error = read_series("part", &part).unwrap_err().to_string();
        assert!(error.contains("row 0: column value holds") && error.contains("finite numbers"), "{error}");
    }
}
