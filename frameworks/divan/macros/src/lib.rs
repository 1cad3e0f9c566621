//! The attribute `bench` of `cyclescope-divan`.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

/// Makes a function a benchmark: `#[divan::bench]`, or `#[divan::bench(args = [1, 10])]` for a
/// function with an argument, which must be `Copy`. The first parameter of a function may be a
/// `divan::Bencher`.
#[proc_macro_attribute]
pub fn bench(options: TokenStream, function: TokenStream) -> TokenStream {
    match registered(options, function.clone()) {
        Ok(more) => function.into_iter().chain(more).collect(),
        Err((at, message)) => {
            let error: TokenStream = format!("::core::compile_error!({message:?});").parse().unwrap_or_default();
            error
                .into_iter()
                .map(|mut token| {
                    token.set_span(at);
                    token
                })
                .chain(function)
                .collect()
        }
    }
}

type Refused = (Span, String);

/// The code that registers a function.
fn registered(options: TokenStream, function: TokenStream) -> Result<TokenStream, Refused> {
    let args = args(options)?;
    let (name, parameters) = signature(function)?;
    let call = match (&args, parameters) {
        (None, 0) => format!("cases.case(None, |bencher| bencher.bench({name}));"),
        (None, 1) => format!("cases.case(None, {name});"),
        (Some(args), 1) => format!(
            "for arg in ({args}) {{ cases.case(Some(&arg), |bencher| bencher.bench(|| {name}(::divan::black_box(arg)))); }}"
        ),
        (Some(args), 2) => {
            format!("for arg in ({args}) {{ cases.case(Some(&arg), |bencher| {name}(bencher, arg)); }}")
        }
        _ => {
            let message = "cyclescope-divan: without `args` a function takes nothing or a Bencher, \
                        with `args` an argument, or a Bencher and an argument";
            return Err((Span::call_site(), message.into()));
        }
    };
    let code = format!(
        r#"const _: () = {{
            fn run(cases: &mut ::divan::registry::Cases) {{ {call} }}
            extern "C" fn register() {{
                static ENTRY: ::divan::registry::Entry =
                    ::divan::registry::Entry::new(::core::concat!(::core::module_path!(), "::", "{name}"), run);
                ENTRY.register();
            }}
            #[used]
            #[unsafe(link_section = ".init_array")]
            static REGISTER: extern "C" fn() = register;
        }};"#
    );
    code.parse().map_err(|error| (Span::call_site(), format!("cyclescope-divan: {error}")))
}

/// The expression of `args`, the only option.
fn args(options: TokenStream) -> Result<Option<String>, Refused> {
    let mut options = options.into_iter();
    let Some(first) = options.next() else { return Ok(None) };
    let equals = matches!(options.next(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=');
    if first.to_string() != "args" || !equals {
        let message = format!("cyclescope-divan has no option `{first}`: it has `args = [...]`");
        return Err((first.span(), message));
    }
    let mut value: Vec<TokenTree> = options.collect();
    let comma = |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',');
    if value.last().is_some_and(comma) {
        value.pop();
    }
    if let Some(more) = value.iter().find(|token| comma(token)) {
        return Err((more.span(), "cyclescope-divan has only the option `args`".into()));
    }
    Ok(Some(value.into_iter().collect::<TokenStream>().to_string()))
}

/// A function's name, and its number of parameters.
fn signature(function: TokenStream) -> Result<(String, usize), Refused> {
    let mut tokens = function.into_iter().skip_while(|token| token.to_string() != "fn").skip(1);
    let name = tokens.next().ok_or((Span::call_site(), "cyclescope-divan: this is not a function".to_string()))?;
    match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            Ok((name.to_string(), parameters(group.stream())))
        }
        _ => {
            let message = "cyclescope-divan has no generic benchmarks: it takes neither `types` nor `consts`";
            Err((name.span(), message.into()))
        }
    }
}

/// Counts the parts between commas outside angle brackets.
fn parameters(list: TokenStream) -> usize {
    let (mut depth, mut number, mut any, mut last) = (0, 0, false, ' ');
    for token in list {
        let sign = match &token {
            TokenTree::Punct(sign) => sign.as_char(),
            _ => ' ',
        };
        match sign {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ => {}
        }
        if sign == ',' && depth == 0 {
            number += usize::from(any);
            any = false;
        } else {
            any = true;
        }
        last = sign;
    }
    number + usize::from(any)
}
