//! Separates product code from code that is compiled for tests only.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta};

/// Returns whether an item is compiled for tests only: `#[cfg(test)]`, or a `#[test]`.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(_) => false,
    })
}

/// Returns the attributes of an item of any kind that can contain code.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the attributes of a part of an `impl`.
pub(crate) fn attributes_of_part(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns the number of lines in items that are compiled for tests only.
pub(crate) fn lines_of_tests(syntax: &syn::File) -> usize {
    let mut counter = TestLines(0);
    counter.visit_file(syntax);
    counter.0
}

struct TestLines(usize);

impl TestLines {
    fn count(&mut self, something: &impl Spanned) {
        let span = something.span();
        self.0 += span.end().line + 1 - span.start().line;
    }
}

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) { self.count(item) } else { visit::visit_item(self, item) }
    }
    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if is_test(attributes_of_part(item)) { self.count(item) } else { visit::visit_impl_item(self, item) }
    }
}
