//! Which functions of Verilator have one copy for all instances.

#[path = "../share.rs"]
mod share;

use share::{are_alike, share};

/// A function of an instance, as Verilator writes it.
fn function(instance: usize, body: &str) -> String {
    let name = format!("s_host___nba_sequent__TOP__s__DOT__gen_node__BRA__{instance}__KET____DOT__u_host__0");
    format!(
        "\nVL_INLINE_OPT void {name}(s_host* vlSelf) {{\n\
         \x20   VL_WRITEF(\"in s.gen_node[{instance}].u_host\");\n{body}}}\n"
    )
}

#[test]
fn instances_that_differ_in_temporaries_alone_call_the_first() {
    let mut texts = [
        function(0, "    vlSelf->__Vfunc_f__3__x = 1;\n    vlSelf->a = vlSelf->__Vfunc_f__3__x;\n"),
        function(1, "    vlSelf->__Vfunc_f__9__x\n        = 1;\n    vlSelf->a = vlSelf->__Vfunc_f__9__x;\n")
            + "int kept;\n",
    ];
    let lines = share(&mut texts);
    assert_eq!(
        lines,
        "#define s_host___nba_sequent__TOP__s__DOT__gen_node__BRA__1__KET____DOT__u_host__0 \
         s_host___nba_sequent__TOP__s__DOT__gen_node__BRA__0__KET____DOT__u_host__0\n"
    );
    assert_eq!(texts[1].trim(), "int kept;");
    assert!(texts[0].contains("in s.gen_node[any].u_host"), "a message names no instance: {}", texts[0]);
}

#[test]
fn a_class_that_differs_in_one_function_stays() {
    let other = |text: String| text.replace("u_host__0", "u_host__1");
    let mut texts = [
        function(0, "    vlSelf->a = 1;\n") + &other(function(0, "    vlSelf->b = 1;\n")),
        function(1, "    vlSelf->a = 1;\n") + &other(function(1, "    vlSelf->b = 2;\n")),
    ];
    let before = texts.clone();
    assert_eq!(share(&mut texts), "");
    assert_eq!(texts, before);
}

#[test]
fn a_temporary_stands_for_one_other_and_a_signal_for_itself() {
    assert!(are_alike("__Vdly__a = __Vtemp_1 + b;", "__Vdly__c = __Vtemp_2+b;"));
    assert!(!are_alike("__Vdly__a = __Vdly__a;", "__Vdly__c = __Vdly__d;"), "one name for two");
    assert!(!are_alike("__Vdly__a = __Vdly__b;", "__Vdly__c = __Vdly__c;"), "two names for one");
    assert!(!are_alike("x = a;", "x = b;"), "signals");
    assert!(!are_alike("x = 1;", "x = 1; y = 2;"), "an end");
}
