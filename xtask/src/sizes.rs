//! The sizes of functions and files.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ImplItemFn, ItemFn, Signature, Stmt, TraitItemFn};

use crate::finding::{Finding, Severity};
use crate::layers::Limits;
use crate::source::{Source, line_of};

/// Checks the functions of a file, including those of tests, and the file itself if it is product
/// code.
pub(crate) fn check(limits: &Limits, source: &Source) -> Vec<Finding> {
    let mut functions = Functions { limits, source, findings: Vec::new() };
    functions.visit_file(&source.syntax);
    let mut findings = functions.findings;
    if source.is_product
        && let Some((severity, allowed)) = judge(source.product_lines, limits.file_lines)
    {
        let message = format!("{} lines without tests, at most {allowed}", source.product_lines);
        findings.push(Finding { severity, file: source.file.clone(), line: 0, message });
    }
    findings
}

/// Returns the severity of a size and the allowed size, or `None` if it is allowed.
fn judge(lines: usize, [warn_above, fail_above]: [usize; 2]) -> Option<(Severity, usize)> {
    match lines {
        _ if lines > fail_above => Some((Severity::Error, warn_above)),
        _ if lines > warn_above => Some((Severity::Warning, warn_above)),
        _ => None,
    }
}

struct Functions<'a> {
    limits: &'a Limits,
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn function(&mut self, signature: &Signature, body: &Block) {
        let line = line_of(signature);
        let lines = body.span().end().line + 1 - line;
        let Some((severity, allowed)) = judge(lines, self.limits.function_lines) else { return };
        if !dispatches(body, self.limits.dispatch_arm_lines) {
            let message = format!("fn {} has {lines} lines, at most {allowed}", signature.ident);
            self.findings.push(Finding { severity, file: self.source.file.clone(), line, message });
        }
    }
}

/// Returns whether a body consists of one `match` with short arms.
fn dispatches(body: &Block, arm_lines_max: usize) -> bool {
    let [Stmt::Expr(Expr::Match(dispatch), _)] = &body.stmts[..] else { return false };
    dispatch.arms.iter().all(|arm| arm.body.span().end().line + 1 - line_of(&arm.body) <= arm_lines_max)
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }
    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }
    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
