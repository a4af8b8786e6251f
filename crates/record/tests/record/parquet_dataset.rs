//! Tests that the dataset keeps every row, whatever happens.

use crate::support::{Memory, any_row, any_span, dataset, provenance, read};
use base::{Span, Time};
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use record::{
    Label, LabelValue, ParquetWriter, Provenance, ReadError, Row, Sink, Written, part_name, read_part, read_spans,
};

fn reads(count: u64) -> Vec<Row> {
    (0..count).map(|i| read(i, Time::ns(10 * i), Span::ns(300 + i % 7), Span::ns(300))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_rows_that_are_read_are_the_rows_that_were_written(
        rows in prop::collection::vec(any_row(), 0..300),
        rows_per_part in 1usize..200,
    ) {
        let dataset = dataset(&rows, rows_per_part);
        prop_assert_eq!(dataset.parts.len(), rows.len().div_ceil(rows_per_part).max(1));
        prop_assert_eq!(dataset.rows(), rows);
    }

    #[test]
    fn a_part_that_is_cut_or_has_a_bit_flipped_is_an_error(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let whole = dataset(&reads(50), 100).parts.remove(0);
        let at = at.index(whole.len());
        prop_assert!(read_part("part", &bytes::Bytes::from(whole[..at].to_vec())).is_err());
        let mut flipped = whole;
        flipped[at] ^= 1 << bit;
        prop_assert!(read_part("part", &bytes::Bytes::from(flipped)).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_spans_that_are_read_are_the_spans_that_were_written(
        spans in prop::collection::vec(any_span(), 0..300),
        rows_per_part in 1usize..200,
    ) {
        let mut writer = ParquetWriter::of_spans(Memory::new(), &provenance()).with_rows_per_part(rows_per_part);
        spans.chunks(7).for_each(|request| writer.spans(request).unwrap());
        writer.finish().unwrap();
        let parts = writer.into_parts().parts.into_iter().map(bytes::Bytes::from);
        let read: Vec<_> = parts.flat_map(|part| read_spans("part", &part).unwrap().rows).collect();
        prop_assert_eq!(read, spans);
    }
}

#[test]
fn labels_are_in_every_row_behind_the_columns_and_do_not_mind_who_reads_rows() {
    let label = |name: &str, value| Label { name: name.into(), value };
    let labels = vec![
        label("design", LabelValue::Text(Some("edm".into()))),
        label("seed", LabelValue::Integer(Some(7))),
        label("label_load", LabelValue::Number(Some(0.5))),
        label("label_wire", LabelValue::Truth(Some(true))),
        label("label_mix", LabelValue::Text(None)),
    ];
    let mut writer = ParquetWriter::new(Memory::new(), &provenance()).with_rows_per_part(1_500).with_labels(labels);
    let rows = reads(2_000);
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap();
    let parts: Vec<bytes::Bytes> = writer.into_parts().parts.into_iter().map(bytes::Bytes::from).collect();
    let read: Vec<_> = parts.iter().flat_map(|part| read_part("part", part).unwrap().rows).collect();
    assert_eq!((parts.len(), read == rows), (2, true));
    let mut labelled = 0;
    for part in parts {
        let file = SerializedFileReader::new(part).unwrap();
        for row in file.get_row_iter(None).unwrap() {
            let columns: Vec<String> =
                row.unwrap().get_column_iter().map(|(name, field)| format!("{name} {field}")).collect();
            let wanted = ["design \"edm\"", "seed 7", "label_load 0.5", "label_wire true", "label_mix null"];
            assert_eq!(columns[columns.len() - wanted.len()..], wanted);
            labelled += 1;
        }
    }
    assert_eq!(labelled, rows.len());
}

#[test]
fn constant_columns_take_next_to_no_room() {
    let size = |labels: Vec<Label>| {
        let mut writer = ParquetWriter::new(Memory::new(), &provenance()).with_labels(labels);
        reads(20_000).iter().for_each(|row| writer.row(row).unwrap());
        writer.finish().unwrap();
        writer.into_parts().parts[0].len()
    };
    let text = |name: &str| Label { name: name.into(), value: LabelValue::Text(Some("a longer text".into())) };
    let (plain, labelled) = (size(Vec::new()), size(vec![text("design"), text("label_a"), text("label_b")]));
    assert!(labelled < plain + 1_500, "{labelled} and {plain} without labels");
}

#[test]
#[should_panic(expected = "bytes cannot be the name of a label")]
fn a_label_cannot_hide_a_column() {
    let label = Label { name: "bytes".into(), value: LabelValue::Integer(None) };
    let _ = ParquetWriter::new(Memory::new(), &provenance()).with_labels(vec![label]);
}

#[test]
fn records_are_no_spans() {
    let part = bytes::Bytes::from(dataset(&reads(2), 10).parts.remove(0));
    assert!(matches!(read_spans("records", &part), Err(ReadError::Schema { .. })));
}

#[test]
fn damage_is_told_with_the_place_and_both_checksums() {
    let mut part = dataset(&reads(50), 100).parts.remove(0);
    let whole = read_part("here", &bytes::Bytes::from(part.clone()));
    assert_eq!(whole.unwrap().rows, reads(50));
    part[100] ^= 1;
    let error = read_part("here", &bytes::Bytes::from(part)).unwrap_err().to_string();
    assert!(error.starts_with("here: not a readable Parquet part: it is damaged: its checksum is "), "{error}");
}

#[test]
fn a_killed_run_leaves_every_full_part_readable() {
    let rows = reads(2_500);
    let mut writer = ParquetWriter::new(Memory::new(), &provenance()).with_rows_per_part(1_000);
    rows.iter().for_each(|row| writer.row(row).unwrap());
    // No finish: the process has died.
    assert_eq!(writer.written(), Written { parts: 2, rows: 2_000 });
    assert_eq!(writer.parts().rows(), rows[..2_000]);
}

#[test]
fn a_full_disk_ends_the_record_with_one_error_and_keeps_the_earlier_parts() {
    let rows = reads(5_000);
    let room = dataset(&rows[..1_000], 1_000).parts[0].len() * 5 / 2;
    let mut writer = ParquetWriter::new(Memory::with_room(room), &provenance()).with_rows_per_part(1_000);
    let accepted = rows.iter().take_while(|row| writer.row(row).is_ok()).count();
    assert_eq!(accepted, 2_999, "the row that fills the third part learns that there is no room for it");

    let error = writer.row(&rows[0]).unwrap_err();
    assert_eq!(error.place, "memory/part-00002.parquet");
    assert!(error.reason.contains("no space left on device"), "{error}");
    assert_eq!(writer.row(&rows[1]).unwrap_err(), error);
    assert_eq!(writer.finish().unwrap_err(), error);
    assert_eq!(writer.parts().rows(), rows[..2_000]);
}

#[test]
fn a_part_takes_exactly_as_many_rows_as_it_may() {
    let mut writer = ParquetWriter::new(Memory::new(), &provenance()).with_rows_per_part(300);
    let rows = reads(300);
    rows[..299].iter().for_each(|row| writer.row(row).unwrap());
    assert_eq!(writer.written().parts, 0);
    writer.row(&rows[299]).unwrap();
    assert_eq!(writer.written(), Written { parts: 1, rows: 300 });
    assert_eq!(writer.finish().unwrap(), Written { parts: 1, rows: 300 }, "nothing is left to write");
}

#[test]
fn a_run_without_rows_leaves_a_part_with_the_columns() {
    let dataset = dataset(&[], 10);
    let part = read_part("part", &bytes::Bytes::from(dataset.parts[0].clone())).unwrap();
    assert_eq!(part.rows, []);
    assert_eq!(part.provenance, provenance());
}

#[test]
fn identical_rows_give_identical_bytes_and_another_plan_gives_others() {
    let rows = reads(1_234);
    assert_eq!(dataset(&rows, 500).parts, dataset(&rows, 500).parts);
    let mut other = ParquetWriter::new(Memory::new(), &Provenance { plan_hash: "ffff".into(), ..provenance() })
        .with_rows_per_part(500);
    rows.iter().for_each(|row| other.row(row).unwrap());
    assert_ne!(dataset(&rows, 500).parts, other.into_parts().parts);
}

#[test]
fn the_footer_names_program_and_plan_and_no_moment() {
    let bytes = bytes::Bytes::from(dataset(&reads(3), 10).parts.remove(0));
    let file = SerializedFileReader::new(bytes).unwrap();
    let metadata = file.metadata().file_metadata();
    assert_eq!(metadata.created_by(), Some("rackweave"));
    let entries = metadata.key_value_metadata().unwrap();
    let entry = |index: usize| (entries[index].key.as_str(), entries[index].value.as_deref());
    assert_eq!(entry(0), ("rackweave.version", Some("1.2.3")));
    assert_eq!(entry(1), ("rackweave.plan_hash", Some("0123abcd")));
    assert_eq!(entry(2).0, "rackweave.crc32");
    assert_eq!(entries.len(), 3);
    assert_eq!(file.num_row_groups(), 1);
}

#[test]
fn a_file_from_elsewhere_is_refused() {
    let error = read_part("old.parquet", &foreign_part()).unwrap_err();
    assert!(matches!(error, ReadError::Parquet { .. }), "{error}");
    assert!(error.to_string().contains("no checksum under rackweave.crc32"), "{error}");
}

fn foreign_part() -> bytes::Bytes {
    let schema = parquet::schema::parser::parse_message_type("message other { required int64 request; }").unwrap();
    let mut file = Vec::new();
    let writer = parquet::file::writer::SerializedFileWriter::new(&mut file, schema.into(), Default::default());
    writer.unwrap().close().unwrap();
    file.into()
}

#[test]
fn the_names_of_parts_sort_as_they_were_written() {
    assert_eq!(part_name(0), "part-00000.parquet");
    assert!(part_name(99) < part_name(100));
}
