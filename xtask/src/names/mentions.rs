//! Every path that a file mentions, resolved by its `use` lines.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ExprUnsafe, ImplItem, Item, ItemImpl, ItemTrait, ItemUse, Macro, Path, Safety, Signature, UseTree};

use crate::product::{attributes, attributes_of_part, is_test};
use crate::source::line_of;

/// A full path that a file mentions: `std::time::Instant` even if the file has `Instant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    parts: Vec<String>,
    /// The line, from 1.
    pub line: usize,
}

impl Mention {
    /// Creates a mention of `parts`. `core` and `alloc` count as `std`.
    fn new(mut parts: Vec<String>, line: usize) -> Mention {
        if let Some(first) = parts.first_mut().filter(|first| matches!(first.as_str(), "core" | "alloc")) {
            *first = "std".into();
        }
        Mention { parts, line }
    }
    /// Returns whether this is `path` or something below it; or, with a glob at its end, whether
    /// the glob imports `path`.
    pub(crate) fn is_of(&self, path: &str) -> bool {
        let wanted: Vec<&str> = path.split("::").collect();
        match self.parts.split_last() {
            Some((last, above)) if last == "*" => {
                let common = above.len().min(wanted.len());
                wanted[..common].iter().eq(&above[..common])
            }
            _ => self.parts.len() >= wanted.len() && wanted.iter().eq(&self.parts[..wanted.len()]),
        }
    }
}

/// Returns every path that the product code of a file mentions.
pub(crate) fn mentions(syntax: &syn::File) -> Vec<Mention> {
    let mut imports = Imports::default();
    imports.visit_file(syntax);
    let mut paths = Paths { names: &imports.names, mentions: imports.mentions };
    paths.visit_file(syntax);
    paths.mentions
}

/// The `use` lines: the paths that they mention, and the path of each imported name.
#[derive(Default)]
struct Imports {
    names: BTreeMap<String, Vec<String>>,
    mentions: Vec<Mention>,
}

impl Imports {
    fn tree(&mut self, tree: &UseTree, above: &[String]) {
        let join = |name: String| above.iter().cloned().chain([name]).collect::<Vec<_>>();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &join(path.ident.to_string())),
            UseTree::Name(name) => self.name(name.ident.to_string(), join(name.ident.to_string()), line_of(name)),
            UseTree::Rename(name) => self.name(name.rename.to_string(), join(name.ident.to_string()), line_of(name)),
            UseTree::Glob(glob) => self.mentions.push(Mention::new(join("*".into()), line_of(glob))),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, above)),
        }
    }
    fn name(&mut self, name: String, mut parts: Vec<String>, line: usize) {
        // `use std::time::{self}` imports `time`.
        let is_self = parts.last().is_some_and(|last| last == "self") && parts.len() > 1;
        if is_self {
            parts.pop();
        }
        let name = if is_self && name == "self" { parts[parts.len() - 1].clone() } else { name };
        self.mentions.push(Mention::new(parts.clone(), line));
        self.names.insert(name, parts);
    }
}

/// Skips items that are compiled for tests only, for both visitors of this file.
macro_rules! skip_tests {
    () => {
        fn visit_item(&mut self, item: &'ast Item) {
            if !is_test(attributes(item)) {
                visit::visit_item(self, item);
            }
        }
        fn visit_impl_item(&mut self, item: &'ast ImplItem) {
            if !is_test(attributes_of_part(item)) {
                visit::visit_impl_item(self, item);
            }
        }
    };
}

impl<'ast> Visit<'ast> for Imports {
    skip_tests!();
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&item.tree, &[]);
    }
}

/// Every other path, and `unsafe`.
struct Paths<'a> {
    names: &'a BTreeMap<String, Vec<String>>,
    mentions: Vec<Mention>,
}

impl Paths<'_> {
    fn path(&mut self, mut parts: Vec<String>, line: usize) {
        if let Some(whole) = parts.first().and_then(|first| self.names.get(first)) {
            parts.splice(..1, whole.iter().cloned());
        }
        self.mentions.push(Mention::new(parts, line));
    }
    fn unsafety(&mut self, line: usize) {
        self.mentions.push(Mention { parts: vec!["unsafe".into()], line });
    }
    /// Mentions every sequence like `a::b::c` in tokens without known syntax.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut run = Run::default();
        for token in tokens {
            match token {
                TokenTree::Ident(name) => run.name(self, name.to_string(), name.span().start().line),
                TokenTree::Punct(punct) if punct.as_char() == ':' => run.colons += 1,
                TokenTree::Group(group) => {
                    run.end(self);
                    self.tokens(group.stream());
                }
                _ => run.end(self),
            }
        }
        run.end(self);
    }
}

/// A path that is being assembled from tokens.
#[derive(Default)]
struct Run {
    parts: Vec<String>,
    line: usize,
    /// Colons since the last name.
    colons: usize,
}

impl Run {
    fn name(&mut self, paths: &mut Paths<'_>, name: String, line: usize) {
        if self.colons != 2 {
            self.end(paths);
        }
        if self.parts.is_empty() {
            self.line = line;
        }
        self.parts.push(name);
        self.colons = 0;
    }
    fn end(&mut self, paths: &mut Paths<'_>) {
        let parts = std::mem::take(&mut self.parts);
        if !parts.is_empty() {
            paths.path(parts, self.line);
        }
        self.colons = 0;
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    skip_tests!();
    fn visit_item_use(&mut self, _: &'ast ItemUse) {}
    fn visit_path(&mut self, path: &'ast Path) {
        self.path(path.segments.iter().map(|part| part.ident.to_string()).collect(), line_of(path));
        visit::visit_path(self, path);
    }
    fn visit_macro(&mut self, item: &'ast Macro) {
        self.tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
    fn visit_expr_unsafe(&mut self, expression: &'ast ExprUnsafe) {
        self.unsafety(line_of(expression));
        visit::visit_expr_unsafe(self, expression);
    }
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        item.unsafety.iter().for_each(|keyword| self.unsafety(line_of(keyword)));
        visit::visit_item_impl(self, item);
    }
    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        item.unsafety.iter().for_each(|keyword| self.unsafety(line_of(keyword)));
        visit::visit_item_trait(self, item);
    }
    fn visit_signature(&mut self, signature: &'ast Signature) {
        if let Safety::Unsafe(keyword) = &signature.safety {
            self.unsafety(line_of(keyword));
        }
        visit::visit_signature(self, signature);
    }
}
