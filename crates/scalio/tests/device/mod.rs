//! The content of a device in memory, by the first sector of each page or segment.

use scalio::{Content, Extent, FlashAnswer, Token};
use std::collections::BTreeMap;

pub type Flash = BTreeMap<u64, Content<Token>>;

pub fn write(flash: &mut Flash, extent: Extent, content: Content<Token>) -> FlashAnswer<Token> {
    assert_eq!(extent.sectors, content.sectors());
    trim(flash, extent);
    flash.insert(extent.sector, content);
    FlashAnswer::Done
}

pub fn list(flash: &Flash, extent: Extent) -> FlashAnswer<Token> {
    let end = extent.sector + u64::from(extent.sectors);
    FlashAnswer::Listed(flash.range(extent.sector..end).map(|(at, content)| (*at, content.listed())).collect())
}

pub fn kind(flash: &Flash, sector: u64) -> FlashAnswer<Token> {
    FlashAnswer::Kind(flash.get(&sector).map(Content::kind))
}

pub fn trim(flash: &mut Flash, extent: Extent) -> FlashAnswer<Token> {
    let end = extent.sector + u64::from(extent.sectors);
    flash.retain(|at, content| at + u64::from(content.sectors()) <= extent.sector || *at >= end);
    FlashAnswer::Done
}
