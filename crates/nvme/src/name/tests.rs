use super::*;

#[test]
fn text_is_padded_with_spaces_and_comes_back_without() {
    let text = Text::<8>::new("RW 1").unwrap();
    let mut bytes = [0; 8];
    text.put(&mut bytes);
    assert_eq!(&bytes, b"RW 1    ");
    assert_eq!(Text::<8>::get(b"RW 1\0\0\0\0", "serial").unwrap(), text, "zeros are padding too");
    assert_eq!(text.as_str(), "RW 1");
}

#[test]
fn text_takes_its_whole_width_and_no_byte_more() {
    assert_eq!(Text::<4>::new("four").unwrap().as_str(), "four");
    assert!(matches!(Text::<4>::new("fiver"), Err(CodecError::Field { field: "text length", got: 5, .. })));
}

#[test]
fn text_that_is_not_printable_is_read_as_question_marks_and_never_made() {
    assert_eq!(Text::<4>::get(b"a\0b ", "serial").unwrap().as_str(), "a?b");
    assert!(matches!(Text::<4>::new("a\x7f"), Err(CodecError::Field { field: "text", got: 0x7f, .. })));
}

#[test]
fn a_name_has_one_to_223_bytes() {
    assert!(Nqn::new("").is_err());
    assert_eq!(Nqn::new(&"n".repeat(223)).unwrap().as_str().len(), 223);
    assert!(matches!(Nqn::new(&"n".repeat(224)), Err(CodecError::Field { got: 224, .. })));
    assert!(Nqn::new("nqn.2014-08 org").is_err(), "a space");
}

#[test]
fn a_name_without_its_zero_is_refused() {
    assert!(matches!(Nqn::get(&[b'n'; 256], "subnqn"), Err(CodecError::Field { field: "subnqn", got: 256, .. })));
    assert!(matches!(Nqn::get(&[0; 256], "subnqn"), Err(CodecError::Field { got: 0, .. })));
    assert_eq!(<Option<Nqn> as Field>::get(&[0; 256], "subnqn"), Ok(None));
}
